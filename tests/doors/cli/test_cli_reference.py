"""The reference of the command line tells of every command and option there is, and of no other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.doors.cli import kept_helps, main
from journeyman.doors.cli.commands import COMMANDS as REGISTERED
from journeyman.doors.cli.commands import load_command
from scripts.write_help import helps

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


HELPS = kept_helps()


def test_the_kept_helps_are_those_of_the_commands() -> None:
    made = {words: text.strip() for words, text in helps()}
    assert made == HELPS, "after a change of commands or options: python -m scripts.write_help"


@pytest.mark.parametrize("words", ["", "serve", "runs", "mcp serve"])
def test_help_loads_no_command_and_nothing_to_make_it_with(words: str) -> None:
    program = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from journeyman.doors.cli import main"
    line = [sys.executable, "-c", f"{program}; main()", *words.split(), "--help"]
    done = subprocess.run(line, check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    shown, loaded = done.stdout.rstrip().rpartition("\n")[::2]
    assert shown == HELPS[words]
    modules = loaded.split()
    ours = {"journeyman", "journeyman.core", "journeyman.core.lazy", "journeyman.doors", "journeyman.doors.cli"}
    assert {name for name in modules if name.startswith("journeyman")} == ours
    assert not {"pydantic", "rich", "typer"} & set(modules)


@pytest.mark.parametrize("words", ["--help", "no-such-command --help"])
def test_a_reader_who_has_read_enough_sees_no_traceback(words: str) -> None:
    """As in ``journeyman --help | head -1``."""
    reads, writes = os.pipe()
    os.close(reads)
    line = [sys.executable, "-c", "from journeyman.doors.cli import main; main()", *words.split()]
    with os.fdopen(writes, "w") as closed:
        done = subprocess.run(
            line, stdout=closed, stderr=subprocess.PIPE, env={**os.environ, "COLUMNS": "100"}, text=True
        )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_program_that_shows_the_help_ignores_broken_pipes_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that its reader has closed would end it else, as it ends whatever serves."""
    before = signal.getsignal(signal.SIGPIPE)
    monkeypatch.setattr(sys, "argv", ["journeyman", "--help"])
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main()
    assert signal.getsignal(signal.SIGPIPE) is before


def test_help_in_a_narrow_terminal_is_made_to_fit(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = cli("runs", "list", "--help").out
    assert shown.startswith("Usage: journeyman runs list [OPTIONS]")
    assert max(map(len, shown.splitlines())) <= 60
