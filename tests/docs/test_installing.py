"""What the installation page promises: a wheel from a checkout that works by itself, and the extras there are."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.waiting import WAIT_SECONDS

PAGE = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_wheel_from_a_checkout_works_by_itself(tmp_path: Path) -> None:
    # Without isolation, since a test must not need a network; the build back end is in the lock.
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, timeout=WAIT_SECONDS)
    [wheel] = tmp_path.glob("*.whl")
    assert f"dist/{wheel.name}" in PAGE
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    assert "journeyman/doors/http/web/static/index.html" in names
    assert "journeyman/py.typed" in names
    program = "import journeyman, sys; from journeyman.doors.cli import main; print(journeyman.__file__); main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, "--version"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )
    file, version = ended.stdout.splitlines()
    assert Path(file).is_relative_to(tmp_path)
    assert version == f"journeyman {wheel.name.split('-')[1]}"


def test_the_page_lists_the_extras_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == extras.keys()
