"""``journeyman worker``: on a real PostgreSQL, with runs that other processes have begun."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman.testing import call, say
from tests.doors.cli.box_shop import AGENT, LIBRARY, PROGRAM, effects, program, shop  # noqa: F401
from tests.doors.cli.driving import Cli, Serve
from tests.waiting import WAIT_SECONDS, wait_until


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
