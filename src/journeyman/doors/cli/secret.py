"""A secret out of the environment, where nobody finds it any more: no tool in this process, and no child of it."""

from __future__ import annotations

import os
import secrets
import sys

TOKEN_VARIABLE = "JOURNEYMAN_TOKEN"
"""The token of a service on this machine, for scripts that cannot read it off the screen."""


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def take_from_environment(name: str) -> str | None:
    """The variable's value; afterwards it is gone, from what the system shows of this process as well."""
    value = os.environ.get(name)
    if value is None:
        return None
    if sys.platform != "win32":
        _overwrite(os.fsencode(name), os.fsencode(value))
    del os.environ[name]
    return value


def _overwrite(name: bytes, value: bytes) -> None:
    """Unsetting a variable leaves its text in memory, where /proc/PID/environ shows it to every process of the user."""
    import ctypes

    getenv = ctypes.CDLL(None).getenv
    getenv.argtypes, getenv.restype = [ctypes.c_char_p], ctypes.c_void_p
    place = getenv(name)
    if place and ctypes.string_at(place) == value:
        ctypes.memset(place, ord("*"), len(value))
