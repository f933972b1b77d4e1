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
    works_from(wheel, tmp_path)


def test_the_package_can_be_imported_from_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "journeyman.zip", "w") as archive:
        for path in (ROOT / "src" / "journeyman").rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, path.relative_to(ROOT / "src"))
    works_from(tmp_path / "journeyman.zip", tmp_path)


def works_from(archive: Path, folder: Path) -> None:
    """Names that are loaded when they are used, data files, and a program as it stands on the first page."""
    program = """
import sys
import journeyman
from journeyman import Agent, Journeyman, run_sync, tool
from journeyman.choosing.actions import concepts
from journeyman.doors.cli import kept_helps
from journeyman.learning import Playbook
from journeyman.retrieval.embedders.minilm import token_ids
from journeyman.testing import ScriptedModel, call, say
@tool(risk="reversible")
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
model = ScriptedModel([call("add", a=1, b=2), say("3")])
assert run_sync(Agent(name="a", instruction="i", tools=[add]), "1+2?", model=model).answer == "3"
assert concepts("a day off") and token_ids("a day off", limit=9) and kept_helps()["serve"]
Journeyman(store="sqlite:///runs.db")
print(journeyman.__file__)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(str(archive))


def test_the_page_lists_the_extras_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == extras.keys()
