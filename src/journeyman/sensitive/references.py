"""Texts that stand for secrets (``${NAME}``, ``${file:PATH}``, ``file:PATH``), and texts that look like secrets.

A value is looked up when it is used, and kept nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from journeyman.core.errors import ConfigurationError
from journeyman.sensitive.tokens import holds_token

FILE = "file:"
MOST_BYTES = 64_000
_REFERENCE = re.compile(r"\$(?:\$(?=\{)|\{([^{}]*)\})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(
    r"(?:^|[_.\s-])(?:password|passwd|passphrase|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key"
    r"|credentials?|authorization|cookie)(?:$|[_.\s-])",
    re.IGNORECASE,
)


class UnresolvedError(ConfigurationError):
    """A reference names a variable that is not set, or a file that cannot be read."""


def resolve(text: str, environ: Mapping[str, str], *, folder: Path) -> str:
    """The text with what its references stand for; ``$${`` is ``${``. Raises UnresolvedError."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"  # of $${
        if name.startswith(FILE):
            return _content(name.removeprefix(FILE), folder)
        if not _NAME.fullmatch(name):
            raise UnresolvedError(f"${{{name}}} names no environment variable; $${{ stands for a plain ${{")
        if not (known := environ.get(name, "")):
            state = "is empty" if name in environ else "is not set"
            raise UnresolvedError(f"the environment variable {name} {state}")
        return known

    return _content(text.removeprefix(FILE), folder) if text.startswith(FILE) else _REFERENCE.sub(value, text)


def references(text: str) -> bool:
    """Whether a text stands for something else."""
    return text.startswith(FILE) or any(match[1] is not None for match in _REFERENCE.finditer(text))


def literal_secret(name: str, text: str) -> str | None:
    """Why a text seems to be a secret itself; None where it does not. ``name`` is the key it stands under."""
    if text.startswith(FILE):
        return None
    bare = _REFERENCE.sub("", text)
    if holds_token(bare):
        return "looks like a secret"
    if "://" in text and _password(bare if "://" in bare else text):
        return "holds a password, and a secret is not written out"
    if _SECRET_NAME.search(name) and not references(text) and text.strip():
        return "is called a secret and is written out"
    return None


def shown(name: str, text: str) -> str:
    """A text for a screen: references as they stand, whatever else may be secret masked."""
    if literal_secret(name, text) is None:
        return text
    if "://" in text and (password := _password(text)) and not holds_token(text):
        return text.replace(f":{password}@", ":***@", 1)
    return "***"


def _password(text: str) -> str | None:
    try:
        return urlsplit(text).password
    except ValueError:
        return None


def _content(path: str, folder: Path) -> str:
    file = folder / Path(path.strip()).expanduser()
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        text = data.decode()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "is no text"
        raise UnresolvedError(f"the file {str(file)!r} cannot be read: {why}") from None
    if len(data) > MOST_BYTES:
        raise UnresolvedError(f"the file {str(file)!r} has more than {MOST_BYTES:,} bytes")
    if not (value := text.strip("\r\n")):
        raise UnresolvedError(f"the file {str(file)!r} is empty")
    return value
