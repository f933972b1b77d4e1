"""The page about the architecture: its drawing is that of the real imports, its walks are traced."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from scripts import draw_house, trace_walks

TEXT = draw_house.PAGE.read_text(encoding="utf-8")


def test_the_rooms_are_drawn_from_the_imports_as_they_are() -> None:
    rooms = draw_house.imports()
    assert draw_house.page(TEXT, rooms) == TEXT, "run 'python -m scripts.draw_house'"
    assert draw_house.picture(rooms) == draw_house.PICTURE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_walks_are_those_that_programs_take_and_none_became_longer() -> None:
    # In a process of its own: threads and caches of other tests are no part of a walk.
    command = [sys.executable, "-m", "scripts.trace_walks", "--check"]
    traced = subprocess.run(command, cwd=draw_house.PROJECT, capture_output=True, text=True, check=False)
    assert traced.returncode == 0, f"{traced.stderr}\n{traced.stdout}"


def test_a_walk_shows_its_files_by_rooms_from_the_doors_downwards() -> None:
    traced = {"One call": {"core/policy.py", "doors/http/chat.py", "core/data.py", "app/desk.py"}}
    page = trace_walks.page(TEXT, traced)
    assert re.findall(r"^\| .*", page.partition(trace_walks.BEGIN)[2], flags=re.MULTILINE) == [
        "| room | the 4 files |",
        "| `doors` | `http/chat` |",
        "| `app` | `desk` |",
        "| `core` | `data`, `policy` |",
    ]
    assert trace_walks.page(page, traced) == page != TEXT
