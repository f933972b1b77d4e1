"""What the fixtures for the command line give to tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from journeyman.testing import ScriptedServer


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ended]
Serve = Callable[..., AbstractContextManager[ScriptedServer]]
