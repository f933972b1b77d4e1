"""What Tab offers, in the shells themselves: at a terminal, with the script that `journeyman completion` prints."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import pytest

from journeyman.doors.cli import kept_helps
from journeyman.doors.cli.completion import Shell, candidates
from tests.waiting import wait_until

STARTED = {
    "bash": (["bash", "--norc", "-i"], 'bind "set show-all-if-ambiguous on"; eval "$(journeyman completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'eval "$(journeyman completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "journeyman completion fish | source"),
}
INSTALLED = [shell for shell in get_args(Shell) if shell == "bash" or shutil.which(shell)]
_CONTROLS = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[=>()][A-Z0-9]?)")


class Keyboard:
    """The keys and the screen of a shell."""

    def __init__(self, terminal: int) -> None:
        self._terminal, self._seen = terminal, b""

    def type(self, keys: str) -> None:
        self._seen = b""
        os.write(self._terminal, keys.encode())

    def see(self, *words: str) -> None:
        """Wait until all of these are on the screen."""
        wait_until(lambda: all(word in self._screen() for word in words))

    def _screen(self) -> str:
        while select.select([self._terminal], [], [], 0)[0]:
            self._seen += os.read(self._terminal, 65536)
        return _CONTROLS.sub("", self._seen.decode(errors="replace"))


@contextmanager
def opened(shell: str, home: Path) -> Iterator[Keyboard]:
    (home / "a file").touch()
    program = home / "journeyman"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m journeyman "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    environment = {**os.environ, "PATH": f"{home}:{os.environ['PATH']}", "HOME": str(home), "TERM": "xterm"}
    command, script = STARTED[shell]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(home)
        os.execvpe(command[0], command, environment)
    keyboard = Keyboard(terminal)
    try:
        keyboard.type(f"{script}; echo rea''dy\n")
        keyboard.see("ready")
        yield keyboard
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(terminal)


@pytest.mark.parametrize("shell", INSTALLED)
def test_tab_completes_commands_options_and_values(shell: str, tmp_path: Path) -> None:
    with opened(shell, tmp_path) as keyboard:
        keyboard.type("journeyman ru\t\t")
        keyboard.see("run", "runs")
        keyboard.type("\x15journeyman runs sh\t--st\t")
        keyboard.see("show", "--store")
        keyboard.type("\x15journeyman runs \t\t")
        keyboard.see("resolve", "replay")
        keyboard.type("\x15journeyman completion zs\t")
        keyboard.see("completion zsh")


@pytest.mark.parametrize("shell", INSTALLED)
def test_where_nothing_fits_tab_completes_files(shell: str, tmp_path: Path) -> None:
    with opened(shell, tmp_path) as keyboard:
        keyboard.type("journeyman db backup a\\ f\t")
        keyboard.see("a\\ file")


@pytest.mark.parametrize("place", kept_helps())
def test_every_command_and_option_of_a_help_is_offered(place: str) -> None:
    text = kept_helps()[place]
    words = {word for word, _ in candidates([*place.split(), "--"])}
    assert words == set(re.findall(r"--[a-z][\w-]*", " ".join(re.findall(r"^  (-.*?)(?:  |$)", text, re.MULTILINE))))
    inner = {name.rpartition(" ")[2] for name in kept_helps() if name and name.rpartition(" ")[0] == place}
    offered = [word for word, said in candidates([*place.split(), ""]) if said]
    assert sorted(offered) == sorted(inner)


def test_the_value_of_an_option_is_one_of_its_choices() -> None:
    assert [word for word, _ in candidates(["runs", "test", "r1", "--strictness", ""])] == [
        "exact",
        "subset",
        "contains",
    ]
    assert list(candidates(["run", "--store", ""])) == []
