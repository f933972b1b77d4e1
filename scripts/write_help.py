"""Writes what every command prints for ``--help`` to ``doors/cli/help.txt``: ``python -m scripts.write_help``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from journeyman.doors import cli
from journeyman.doors.cli.commands import COMMANDS, load_command, program

_MAKING: dict[str, Any] = {"resilient_parsing": True, "terminal_width": cli.HELP_WIDTH - 2}  # a margin, as always


def helps() -> Iterator[tuple[str, str]]:
    """What ``--help`` prints, by the words of the command; "" has that of the program."""
    whole = get_command(program())
    context = whole.make_context("journeyman", [], **_MAKING)
    yield "", whole.get_help(context)
    for name in COMMANDS:
        yield from _helps(load_command(name), name, context)


def _helps(command: Any, words: str, parent: Any) -> Iterator[tuple[str, str]]:
    own = words.rpartition(" ")[2]
    context = command.make_context(own, [], parent=parent, **_MAKING)
    yield words, command.get_help(context)
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, f"{words} {name}", context)


def text() -> str:
    return "\n".join(f"{cli.HEADING} {words}".rstrip() + f"\n\n{shown.strip()}\n" for words, shown in helps())


if __name__ == "__main__":
    Path(cli.__file__).with_name("help.txt").write_text(text(), encoding="utf-8")
