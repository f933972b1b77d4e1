"""The suite where signals are ignored, as under nohup and in background jobs: programs that tests start heed them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import WAIT_SECONDS

PROBE = "import signal; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
ASKED = f"""
import subprocess, sys

def test_a_child_heeds_what_the_suite_ignores():
    subprocess.run([sys.executable, "-c", {PROBE!r}], check=True)
"""


@pytest.mark.slow
def test_programs_that_tests_start_heed_ctrl_c_also_where_the_suite_ignores_it(tmp_path: Path) -> None:
    test = tmp_path / "test_child.py"
    test.write_text(ASKED)
    project = Path(__file__).parents[1]
    pytest_there = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", f"--rootdir={project}", str(test)]
    command = ["sh", "-c", "trap '' INT TERM; exec \"$@\"", "sh", *pytest_there]
    ended = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert ended.returncode == 0, ended.stdout
