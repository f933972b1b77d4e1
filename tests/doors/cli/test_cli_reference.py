"""The reference of the command line tells of every command and option there is, and of no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.doors.cli import COMMANDS as REGISTERED
from journeyman.doors.cli import load_command

REFERENCE = Path(__file__).parents[3] / "docs" / "command-line.md"


def every_command(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    # Newer versions of typer bring a click of their own, older ones use click: there is no class to ask for.
    if not hasattr(command, "commands"):
        yield name, command
        return
    for word, part in command.commands.items():
        yield from every_command(part, f"{name} {word}")


COMMANDS = {
    full: command for name in REGISTERED for full, command in every_command(load_command(name), f"journeyman {name}")
}


def usages() -> dict[str, str]:
    """What the reference's blocks say about each command."""
    blocks = re.findall(r"^```\n(.*?)^```", REFERENCE.read_text(), re.DOTALL | re.MULTILINE)
    lines = re.sub(r"\n +", " ", "\n".join(blocks)).splitlines()
    found = {}
    for line in lines:
        words = re.match(r"journeyman(?: [a-z]+)*(?= |$)", line)
        if words is not None and "--version" not in line:
            found[words.group()] = line
    return found


def test_the_reference_has_all_commands_and_no_other() -> None:
    assert sorted(usages()) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_all_options_of_a_command_and_no_other(name: str) -> None:
    options = {
        option
        for parameter in COMMANDS[name].params
        if parameter.param_type_name == "option"
        for option in parameter.opts
        if option.startswith("--")
    }
    assert set(re.findall(r"--[a-z-]+", usages()[name])) == options - {"--help", "--config"}  # every command has these
    assert "--config" in options
