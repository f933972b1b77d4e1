"""What the fixtures for the command line give to tests."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from journeyman.testing import ScriptedServer
from tests.waiting import WAIT_SECONDS


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ended]
Piped = Callable[..., Ended]
Serve = Callable[..., AbstractContextManager[ScriptedServer]]

# The terminal becomes the program's own, so that Ctrl-C in it reaches the program.
PROGRAM = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from journeyman.doors.cli import main; main()"
PROMPT = "› "


class Terminal:
    """A program in a pseudo-terminal of 80 columns."""

    def __init__(self, *arguments: str) -> None:
        import pty

        self._ours, theirs = pty.openpty()
        command = [sys.executable, "-c", PROGRAM, *arguments]
        self._program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self._fresh = ""
        self.shown = ""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def answer(self, keys: str, *, patience: float = WAIT_SECONDS) -> None:
        """Wait until it asks, then type."""
        while PROMPT not in self._fresh:
            assert self._read(patience), f"it ended without asking:\n{self.shown}"
        self._fresh = ""
        self.type(keys)

    def end(self, *, patience: float = WAIT_SECONDS) -> int:
        while self._read(patience):
            pass
        return self._program.wait(WAIT_SECONDS)

    def close(self) -> None:
        self._program.kill()
        self._program.wait(WAIT_SECONDS)
        os.close(self._ours)

    def _read(self, patience: float) -> bool:
        readable, _, _ = select.select([self._ours], [], [], patience)
        assert readable, f"it says nothing any more:\n{self.shown}"
        try:
            text = os.read(self._ours, 65_536).decode(errors="replace")
        except OSError:  # how a pseudo-terminal says that nobody is there any more
            return False
        self._fresh += text
        self.shown += text
        return bool(text)


Open = Callable[..., Terminal]
