"""``journeyman serve`` and ``journeyman worker``, as processes of their own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman.testing import call, say
from tests.doors.cli.box_shop import AGENT, LIBRARY, PROGRAM, effects, program
from tests.doors.cli.driving import Cli, Serve
from tests.waiting import WAIT_SECONDS, wait_until


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, ending: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, "serve", "--port", "0", "--store", f"sqlite:///{tmp_path / 'store.db'}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert found is not None
        made = httpx.post(f"{found.group()}/api/v1/tasks", json={"title": "Buy milk"}, timeout=WAIT_SECONDS)
        assert made.status_code == 201
        process.send_signal(ending)
        assert process.wait(WAIT_SECONDS) == 0


def test_an_address_others_can_reach_needs_tokens(cli: Cli, tmp_path: Path) -> None:
    ended = cli("serve", "--host", "0.0.0.0", "--store", f"sqlite:///{tmp_path / 'store.db'}")
    assert ended.code == 2
    assert "needs tokens" in ended.err


def test_a_token_file_that_cannot_be_read_is_wrong_usage(cli: Cli, tmp_path: Path) -> None:
    ended = cli("serve", "--tokens", str(tmp_path / "none.json"))
    assert ended.code == 2
    assert "--tokens" in ended.err


# --- workers


def test_a_worker_on_sqlite_is_told_what_to_do_instead(cli: Cli) -> None:
    ended = cli("worker")
    assert (ended.code, ended.out) == (2, "")
    assert "workers need PostgreSQL" in ended.err
    assert "journeyman runs resume" in ended.err


def test_without_its_packages_a_worker_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name in ("journeyman.app.worker", "journeyman.app.queue")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "procrastinate", None)
    ended = cli("worker", "--store", "postgresql://127.0.0.1/none")
    assert (ended.code, ended.out) == (1, "")
    assert "pip install 'journeyman[postgres]'" in ended.err


@pytest.mark.slow
@pytest.mark.usefixtures("shop")
def test_a_worker_ends_what_other_processes_began(cli: Cli, serve: Serve, postgres_url: str, tmp_path: Path) -> None:
    store = ("--store", postgres_url)

    def runs() -> dict[str, str]:
        found: list[dict[str, Any]] = json.loads(cli("runs", "list", *store, "--json").out)
        return {run["task"]: run["status"] for run in found}

    (tmp_path / "deadly").touch()
    turns = (call("count_boxes", shelf="a"), call("burn_shelf", shelf="a"), say("Three."), say("Warm."))
    with serve(*turns) as server:
        model = ("--model", f"{server.url}#any")
        assert program("run", "Count.", *AGENT, *model, *store).returncode == -signal.SIGKILL
        assert program("run", "Burn.", *AGENT, *model, *store).returncode == 3
        [approval] = json.loads(cli("approvals", "list", *store, "--json").out)

        command = [sys.executable, "-c", PROGRAM, "worker", *LIBRARY, *store, "--lease", "2", "--concurrency", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
            assert worker.stderr is not None
            assert "ready: 3 tools, up to 1 run at once" in worker.stderr.readline()
            wait_until(lambda: runs()["Count."] == "completed")
            assert effects(tmp_path) == []
            assert cli("approvals", "approve", approval["id"], *store).code == 0
            wait_until(lambda: runs()["Burn."] == "completed")
            worker.send_signal(signal.SIGTERM)
            out, err = worker.communicate(timeout=WAIT_SECONDS)
    assert (worker.returncode, out, effects(tmp_path)) == (0, "", ["burnt a"])
    assert "stopped" in err
    assert "Traceback" not in err
