"""The keys under which rows of the audit log get their macs. They are kept outside the database."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from journeyman.core.errors import ConfigurationError

logger = logging.getLogger("journeyman.store")

VARIABLE = "JOURNEYMAN_AUDIT_KEY"
"""One key, or several with commas between them: the first is written with, all are verified with. Empty: no key."""
SHORTEST = 16
_FILE = Path("journeyman", "audit.key")


class AuditKey:
    """One key. Its id tells keys apart and says nothing about them."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self.id = self._digest(b"journeyman audit key id")[:16]

    def mac(self, digest: str, before: str | None) -> str:
        """Of a row's hash and the mac before it."""
        return self._digest(f"{before or ''}\n{digest}".encode())

    def _digest(self, message: bytes) -> str:
        return hmac.digest(self._secret, message, "sha256").hex()


class AuditKeys:
    """The keys that this process has, read when the first row is written or verified.

    With ``make_file``, for a database that is a file of this machine, a user without a key is given one: in a file that
    nobody else can read, in their folder for state.
    """

    def __init__(self, secrets: Sequence[str] | None = None, *, make_file: bool = False) -> None:
        self._given = secrets
        self._make_file = make_file

    @cached_property
    def writing(self) -> AuditKey | None:
        """The key for new rows; None: they get no mac."""
        if self._secrets:
            return AuditKey(self._secrets[0])
        if self._make_file and not self._declined:
            secret = _secret_in_file(make=True)
            return None if secret is None else AuditKey(secret)
        return None

    @cached_property
    def by_id(self) -> dict[str, AuditKey]:
        """All keys, to verify with."""
        kept = _secret_in_file(make=False) if self._make_file and not self._declined else None
        keys = [AuditKey(secret) for secret in (*self._secrets, *([kept] if kept else ()))]
        return {key.id: key for key in keys}

    @cached_property
    def _secrets(self) -> list[str]:
        given = self._given
        if given is None:
            given = [part.strip() for part in os.environ.get(VARIABLE, "").split(",") if part.strip()]
        if any(len(secret) < SHORTEST for secret in given):
            raise ConfigurationError(f"a key of the audit ({VARIABLE}) has at least {SHORTEST} characters")
        return list(given)

    @property
    def _declined(self) -> bool:
        """Whether somebody said that there is to be no key."""
        return self._given is not None or os.environ.get(VARIABLE) == ""


def key_file() -> Path | None:
    """Where a user's own key is kept; None for one without a home."""
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / _FILE
    except RuntimeError:
        return None


def _secret_in_file(*, make: bool) -> str | None:
    path = key_file()
    if path is None:
        return None
    try:
        if make and not path.exists():
            _write_new(path)
        if path.stat().st_mode & 0o077:
            logger.warning("the key of the audit can be read by others: chmod 600 %s", path)
        return path.read_text().strip() or None
    except OSError as error:
        if make:
            logger.warning("the audit log has no key, since %s cannot be used: %s", path, error.strerror)
        return None


def _write_new(path: Path) -> None:
    """Make the file, whole or not at all: another process may be doing the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        os.link(draft, path)
    except FileExistsError:
        pass  # that one is as good
    finally:
        draft.unlink()
