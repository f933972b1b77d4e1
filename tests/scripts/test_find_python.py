"""`scripts/find-python`: which Python `make` takes, and what it says when there is none. Interpreters are stand-ins."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "find-python"

OLD = """case "$2" in *platform*) echo 3.9.18 ;; *version_info\\ \\<*) exit 1 ;; esac"""
WITHOUT_VENV = (
    """case "$2" in *ensurepip*) exit 1 ;; *-venv*) echo python3.12-venv ;; *platform*) echo 3.12.1 ;; esac"""
)
BROKEN = "exit 127"
GOOD = f'exec {sys.executable} "$@"'

Find = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    def run(*, named: str = "", **interpreters: str) -> subprocess.CompletedProcess[str]:
        for name, body in interpreters.items():
            stand_in = tmp_path / name.replace("_", ".")
            stand_in.write_text(f"#!/bin/sh\n{body}\n")
            stand_in.chmod(0o755)
        environment = {**os.environ, "PATH": str(tmp_path), "PYTHON": named}
        return subprocess.run(["/bin/sh", SCRIPT], env=environment, capture_output=True, text=True, check=False)

    return run


def test_a_good_python3_is_taken(find: Find) -> None:
    assert find(python3=GOOD, python3_12=GOOD).stdout == "python3\n"


def test_a_newer_one_is_taken_when_python3_is_too_old_or_has_no_venv(find: Find) -> None:
    assert find(python3=OLD, python3_13=WITHOUT_VENV, python3_12=BROKEN, python3_11=GOOD).stdout == "python3.11\n"


def test_a_named_python_is_the_only_one_looked_at(find: Find) -> None:
    assert find(named="python3.12", python3=GOOD, python3_12=GOOD).stdout == "python3.12\n"
    refused = find(named="python9", python3=GOOD)
    assert refused.returncode == 1
    assert "PYTHON=python9 does not run" in refused.stderr


def test_without_python_the_packages_to_install_are_named(find: Find) -> None:
    refused = find()
    assert refused.returncode == 1
    assert "no python3 found" in refused.stderr
    assert "apt install python3 python3-venv" in refused.stderr


def test_without_venv_the_package_to_install_is_named(find: Find) -> None:
    refused = find(python3=WITHOUT_VENV)
    assert refused.returncode == 1
    assert "'python3 -m venv' does not work with: python3." in refused.stderr
    assert "apt install python3-venv (or python3.12-venv for python3)" in refused.stderr


def test_when_all_are_too_old_their_versions_are_named(find: Find) -> None:
    refused = find(python3=OLD)
    assert refused.returncode == 1
    assert "found only: python3 (3.9.18)" in refused.stderr
    assert "make PYTHON=" in refused.stderr
