"""What the fixtures for the command line give to tests."""

from __future__ import annotations

import codecs
import os
import select
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from journeyman.testing import ScriptedServer
from scripts.terminal_screen import Screen
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
AT_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
"""Runs a command in a pseudo-terminal: decisions are only taken there."""


class Terminal:
    """A program in a pseudo-terminal, and what is seen there."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 40) -> None:
        import pty

        self._ours, theirs = pty.openpty()
        self.screen = Screen(columns, rows)
        self.resize(columns, rows)
        command = [sys.executable, "-c", PROGRAM, *arguments]
        self._program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._answered = -1
        self.shown = ""
        """Everything that was written, escape sequences included."""

    def resize(self, columns: int, rows: int) -> None:
        import fcntl
        import termios

        self.screen.columns, self.screen.rows = columns, rows
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str | bytes) -> None:
        os.write(self._ours, keys if isinstance(keys, bytes) else keys.encode())

    def asks(self) -> bool:
        """Whether it waits for an answer that was not given yet."""
        return self.screen.row > self._answered and self.screen.before_cursor.endswith(PROMPT)

    def answer(self, keys: str | bytes, *, patience: float = WAIT_SECONDS) -> None:
        """Wait until it asks, then type."""
        self.wait_for(self.asks, patience=patience)
        self._answered = self.screen.row
        self.type(keys)

    def wait_for(self, what: str | Callable[[], bool], *, patience: float = WAIT_SECONDS) -> None:
        """Wait until a text is on the screen, or something else is so there."""
        while not (what in self.screen.text if isinstance(what, str) else what()):
            assert self._read(patience), f"it ended without this:\n{self.screen.text}"

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
        assert readable, f"it says nothing any more:\n{self.screen.text}"
        try:
            read = os.read(self._ours, 65_536)
        except OSError:  # how a pseudo-terminal says that nobody is there any more
            return False
        text = self._decoder.decode(read)
        self.shown += text
        self.screen.feed(text)
        return bool(read)


Open = Callable[..., Terminal]
