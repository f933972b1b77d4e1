"""Decisions are for people: a program that a tool has started may look, and decides nothing.

It keeps a tool that can start programs from answering its own questions. It is no wall: what runs as the same user can
open the store itself; against that, tools run as another user.
"""

from __future__ import annotations

import os
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
    """Refuse to decide in a process that a command, and so one of its tools, has started. Raises ApprovalError."""
    started_by = os.environ.get(VARIABLE)
    if started_by is not None and started_by != str(os.getpid()):
        raise ApprovalError(
            f"this was started by a tool of the journeyman process {started_by}, and tools decide nothing: "
            "decide in a terminal of your own"
        )
