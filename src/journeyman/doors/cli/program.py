"""This program in its surroundings: how and by whom it was started, secrets of its environment, its user's files."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from journeyman.core.errors import ApprovalError

NAME = "journeyman"


def program(*, folder: Path | None = None) -> str:
    """What to type for this program: its name where the shell finds it by that, else its path, quoted.

    ``folder`` is where it will be typed, if that is not the current one.
    """
    started = Path(sys.argv[0])
    if started.name != NAME or not started.is_file():
        return NAME  # inside another program, whose users know how to start this one
    found = shutil.which(NAME)
    if found is not None and os.path.samefile(found, started):
        return NAME
    path, here = started.absolute(), Path.cwd() if folder is None else folder.absolute()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


# --- secrets in the environment


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


# --- files kept for the user


def state_folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    # A relative folder is to be ignored, says the specification.
    root = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return root / "journeyman"


def replace_file(place: Path, content: bytes) -> None:
    """Put a file in place whole, with mode 0600: two programs at once leave one of the two, never a torn file."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, written = tempfile.mkstemp(dir=place.parent, prefix=place.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(written, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(written)
        raise


# --- who started it

# Decisions are for people: a program that a tool has started may look, and decides nothing. It keeps a tool that can
# start programs from answering its own questions. It is no wall: what runs as the same user can open the store itself,
# or a terminal of its own; against that, tools run as another user.

STARTED_VARIABLE = "JOURNEYMAN_STARTED_BY"
"""In the environment of whatever a command starts: the command's process."""


@contextmanager
def children_marked() -> Iterator[None]:
    """Mark every process that is started meanwhile, and those that these start."""
    if STARTED_VARIABLE in os.environ:
        yield
        return
    os.environ[STARTED_VARIABLE] = str(os.getpid())
    try:
        yield
    finally:
        os.environ.pop(STARTED_VARIABLE, None)


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
    started_by = os.environ.get(STARTED_VARIABLE)
    if started_by is not None and started_by != str(os.getpid()):
        raise ApprovalError(
            f"this was started by a tool of the journeyman process {started_by}, and tools decide nothing: "
            "decide in a terminal of your own"
        )
