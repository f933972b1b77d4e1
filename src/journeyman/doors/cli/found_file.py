"""A journeyman.yaml that was merely found in the current folder: what it would run, and whether a person has agreed.

A folder from elsewhere may bring one. It is asked about once; a file that is the user's own, and that nobody else can
write, may then be edited at will, any other is asked about again when it changes. Who names a file has agreed to it.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from journeyman.app import address_of, is_configured
from journeyman.core.data import digest
from journeyman.core.errors import ApprovalError, ConfigurationError
from journeyman.core.sensitive.tokens import bare_url, redacted
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.people import must_be_a_person
from journeyman.doors.cli.program import program
from journeyman.doors.cli.trust import agreed, change_trusted, trusted

if TYPE_CHECKING:
    from journeyman.app import Loaded

SUFFIXES = (".yaml", ".yml")
MODEL_VARIABLE, STORE_VARIABLE = "JOURNEYMAN_MODEL", "JOURNEYMAN_STORE"
_MARK = "configuration:"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def confirm_file(loaded: Loaded) -> None:
    """Ask about a file that runs or reaches something, unless it was confirmed. Raises WrongUsageError."""
    if (why := unconfirmed(loaded)) is None:
        return
    name = screen.escaped(str(loaded.path))
    if not screen.interactive():
        raise WrongUsageError(
            f"{name} in this folder {'; '.join(why)}. Nobody can be asked here: read the file, then confirm it with "
            f"'{program()} trust {shlex.quote(name)}', or name it with --config {shlex.quote(name)}"
        )
    screen.note(f"{name} in this folder was not used here before. It", *why)
    if not agreed():
        raise WrongUsageError(f"{name} was not confirmed, nothing of it was run")
    remember_file(loaded.path)


def remember_named(loaded: Loaded) -> None:
    """A person has named a file, and so agreed to it: commands that are printed as the next step find it confirmed."""
    if unconfirmed(loaded) is not None:
        with suppress(ApprovalError, ConfigurationError):  # then it is asked about later
            must_be_a_person()
            remember_file(loaded.path)


def unconfirmed(loaded: Loaded) -> list[str] | None:
    """What a file would do that nobody has agreed to; None where there is nothing of that kind."""
    why = list(_reasons(loaded))
    return why if why and not is_confirmed(loaded.path) else None


def is_confirmed(path: Path) -> bool:
    return _mark(path) in trusted()


def remember_file(path: Path) -> None:
    entry = {"file": str(path.resolve()), "confirmed_at": int(time.time())}
    mark = _mark(path)
    change_trusted(lambda entries: entries | {mark: entry})


def forget_file(path: Path) -> None:
    mark = _mark(path)
    change_trusted(lambda entries: {other: entry for other, entry in entries.items() if other != mark})


def _mark(path: Path) -> str:
    """What is confirmed: the place, where only the user can write there; else the place with what stands there."""
    place = str(path.resolve())
    return _MARK + (digest(place) if _is_own(path) else digest(place, hashlib.sha256(path.read_bytes()).hexdigest()))


def _is_own(path: Path) -> bool:
    if not hasattr(os, "geteuid"):
        return True  # on Windows, where a folder of one's own is another's business
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def _reasons(loaded: Loaded) -> Iterator[str]:
    settings = loaded.settings
    code = [item.import_ for item in settings.tools.values() if item.import_]
    code += [name for name in settings.toolkits or () if ":" in name]
    code += [item.schema_ for item in settings.categories.values() if isinstance(item.schema_, str)]
    code += [settings.agent] if settings.agent and ":" in settings.agent else []
    if code:
        yield f"runs the code of {_listed(code)}"
    servers = [item for item in settings.mcp.values() if item.enabled]
    if started := [shlex.join(item.command) for item in servers if item.command]:
        yield f"starts {_listed(started)}"
    if reached := [bare_url(item.url) for item in servers if item.url]:
        yield f"takes tools from {_listed(reached)}"
    # What the environment says instead is the user's own word.
    address = None if settings.model is None or os.environ.get(MODEL_VARIABLE) else address_of(settings.model)
    if address is not None and not is_configured(address):
        yield f"sends what agents read to {screen.escaped(address)}, which you have not configured"
    if not settings.store.startswith("sqlite:") and not os.environ.get(STORE_VARIABLE):
        yield f"keeps runs in {_listed([bare_url(settings.store)])}"


def _listed(names: list[str]) -> str:
    shown = [screen.escaped(redacted(name)) for name in names]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")
