"""``journeyman serve`` as its own process: it says where it listens, answers, and ends in order."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.doors.cli.driving import Cli
from tests.waiting import WAIT_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path, ending: signal.Signals) -> None:
    program = [sys.executable, "-c", "from journeyman.doors.cli import main; main()"]
    command = [*program, "serve", "--port", "0", "--store", f"sqlite:///{tmp_path / 'store.db'}"]
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
