"""``journeyman init``: a configuration file to begin with, a first tool, and a test of it that passes."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from journeyman.app import json_schema
from journeyman.doors.cli import screen
from journeyman.doors.cli.found_file import remember_file
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.program import program

SCHEMA = "journeyman.schema.json"
NAMES = ("journeyman.yaml", "my_tools.py", "test_my_tools.py")


def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to write; made if need be.")] = Path(),
) -> None:
    """Write journeyman.yaml with comments, a first tool, a test of it, and the schema for editors.

    What is there already is never overwritten: then nothing is written at all.
    """
    kept = files("journeyman.doors.cli") / "templates"
    texts = {name: (kept / f"{name}.txt").read_text(encoding="utf-8") for name in NAMES}
    texts[SCHEMA] = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if there := [name for name in texts if (folder / name).exists() or (folder / name).is_symlink()]:
        raise WrongUsageError(f"{', '.join(there)} in {str(folder)!r} would be overwritten; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)
        screen.say(f"wrote {folder / name}")
    remember_file(folder / NAMES[0])
    inside = "" if folder == Path() else f"cd {folder} && "
    started = program(folder=folder)
    steps = [
        (f"{started} config check", "is everything right?"),
        ("python -m pytest", "the test of the tool"),
        (f'{started} run "Greet Ada"', "a run with it"),
    ]
    width = max(len(typed) for typed, _ in steps)
    screen.note(
        "what to do next:",
        *(f"{inside}{typed.ljust(width)}   {does}" for typed, does in steps),
    )
