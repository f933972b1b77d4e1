"""``journeyman doctor``, ``--help`` and ``--version``."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.lazy import install_command
from journeyman.stores.store import open_store
from tests.doors.cli.driving import Cli
from tests.waiting import WAIT_SECONDS


@pytest.mark.usefixtures("no_engine")
def test_the_doctor_says_what_is_missing_and_what_to_do(cli: Cli) -> None:
    ended = cli("doctor")
    assert ended.code == 0
    told = " ".join(ended.out.split())
    for expected in (
        "nothing found",
        "OPENAI_API_KEY: not set",
        install_command("embedded"),
        "runs live in memory",
        "JOURNEYMAN_LOG=info",
        "JOURNEYMAN_SECRET_",
    ):
        assert expected in told


def test_the_doctor_tells_in_order_where_a_model_was_looked_for(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_GGUF", "weights.gguf")
    found = json.loads(cli("doctor", "--json").out)["model"]
    assert (found["auto"], found["found"]) == ("gguf:weights.gguf", True)
    looked = [line.partition(":")[0] for line in found["because"]]
    servers = "servers on this machine"
    assert looked == ["JOURNEYMAN_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", servers, "JOURNEYMAN_GGUF"]


def test_the_doctor_names_secrets_and_keys_and_never_shows_them(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("JOURNEYMAN_SECRET_GITHUB_TOKEN", "ghp-canary")
    for ended in (cli("doctor"), cli("doctor", "--json")):
        assert "GITHUB_TOKEN" in ended.out
        assert "openai:gpt-5-mini" in ended.out
        assert "canary" not in ended.out + ended.err


@pytest.mark.usefixtures("no_engine")
def test_the_doctor_speaks_json_and_knows_our_extras(cli: Cli) -> None:
    found = json.loads(cli("doctor", "--json").out)
    assert found["model"]["found"] is False
    assert set(found["extras"]["otel"]) == {"installed", "missing"}
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_the_doctor_counts_what_waits_in_the_store(cli: Cli, approval: dict[str, Any]) -> None:
    found = json.loads(cli("doctor", "--json").out)["store"]
    assert (found["healthy"], found["unfinished_runs"], found["pending_approvals"]) == (True, 1, 1)
    assert "1 unfinished, 1 waiting" in " ".join(cli("doctor").out.split())


def test_the_doctor_finds_a_sick_store_and_never_makes_one(cli: Cli, tmp_path: Any) -> None:
    found = json.loads(cli("doctor", "--json").out)["store"]
    assert (found["found"], list(tmp_path.glob("*.db"))) == (False, [])
    (tmp_path / "journeyman.db").write_text("this is no database, and long enough to be seen as none" * 20)
    found = json.loads(cli("doctor", "--json").out)["store"]
    assert (found["healthy"], "damaged or no database" in found["told"]) == (False, True)
    (tmp_path / "journeyman.db").unlink()
    cli("db", "upgrade")
    cli("db", "downgrade", "1", "--yes")
    assert "journeyman db upgrade" in json.loads(cli("doctor", "--json").out)["store"]["told"]


def test_the_doctor_says_that_a_server_cannot_be_reached_and_shows_no_password(cli: Cli) -> None:
    ended = cli("doctor", "--json", "--store", "postgresql://ada:canary@127.0.0.1:1/shop")
    found = json.loads(ended.out)["store"]
    assert (ended.code, found["healthy"]) == (0, False)
    assert "no connection" in found["told"]
    assert "canary" not in ended.out + ended.err


def test_help_is_quick_because_it_loads_no_agent() -> None:
    program = "try: main()\nfinally: print('journeyman.app' in sys.modules)"
    command = [sys.executable, "-c", f"import sys; from journeyman.doors.cli import main\n{program}", "--help"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS, check=True)
    assert "demo" in ended.stdout
    assert ended.stdout.endswith("False\n")


def test_the_version_is_the_installed_one(cli: Cli) -> None:
    assert cli("--version").out == "journeyman 0.1.0\n"
    as_module = subprocess.run([sys.executable, "-m", "journeyman", "--version"], capture_output=True, text=True)
    assert (as_module.returncode, as_module.stdout) == (0, "journeyman 0.1.0\n")


def test_the_doctor_warns_of_a_store_that_others_can_read(cli: Cli, tmp_path: Path) -> None:
    asyncio.run(opened_once(tmp_path / "journeyman.db"))
    assert not json.loads(cli("doctor", "--json").out)["store"]["readable_by_others"]
    (tmp_path / "journeyman.db").chmod(0o644)
    assert json.loads(cli("doctor", "--json").out)["store"]["readable_by_others"]
    assert "others on this machine can read it: chmod 600 journeyman.db*" in " ".join(cli("doctor").out.split())


async def opened_once(path: Path) -> None:
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
