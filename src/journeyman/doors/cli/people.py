"""Decisions are for people: a program that a tool has started may look, and decides nothing.

It keeps a tool that can start programs from answering its own questions. It is no wall: what runs as the same user can
open the store itself, or a terminal of its own; against that, tools run as another user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from journeyman.core.errors import ApprovalError

VARIABLE = "JOURNEYMAN_STARTED_BY"
"""In the environment of whatever a command starts: the command's process."""


@contextmanager
def children_marked() -> Iterator[None]:
    """Mark every process that is started meanwhile, and those that these start."""
    if VARIABLE in os.environ:
        yield
        return
    os.environ[VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)


def must_be_a_person() -> None:
    """Refuse to decide where nobody sits at a terminal. Raises ApprovalError.

    A model whose client has a shell would answer its own questions; over HTTP a person's token counts instead.
    """
    must_not_be_a_tool()
    if not at_a_terminal():
        raise ApprovalError(
            "only a person decides, and there is no terminal here: type this in one, or decide on the page of "
            "'journeyman serve', or over HTTP with your token"
        )


def at_a_terminal() -> bool:
    # A stream that the caller has closed is None.
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def must_not_be_a_tool() -> None:
    """Refuse to decide in a process that a command, and so one of its tools, has started. Raises ApprovalError."""
    started_by = os.environ.get(VARIABLE)
    if started_by is not None and started_by != str(os.getpid()):
        raise ApprovalError(
            f"this was started by a tool of the journeyman process {started_by}, and tools decide nothing: "
            "decide in a terminal of your own"
        )
