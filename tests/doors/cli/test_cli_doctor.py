"""``journeyman doctor``, ``--help`` and ``--version``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
        "pip install 'journeyman[embedded]'",
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


def test_help_is_quick_because_it_loads_no_agent(cli: Cli) -> None:
    code = "import sys; from journeyman.doors.cli.commands import commands; print('journeyman.app' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_SECONDS, check=True
    )
    assert ended.stdout == "False\n"
    assert "demo" in cli("--help").out


def test_the_version_is_the_installed_one(cli: Cli) -> None:
    assert cli("--version").out == "journeyman 0.1.0\n"
