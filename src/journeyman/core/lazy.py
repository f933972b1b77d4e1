"""Names of a package that are loaded when they are first used; listed once, where type checkers see them imported.

And how to install one of our extras: the command to print where a package is missing.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, *, moved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a package: what its ``__init__`` imports under ``if TYPE_CHECKING:``.

    ``moved`` has names that the package had once, by the module that has them now.
    """

    @cache
    def homes() -> dict[str, str]:
        import ast

        # By its loader, not by its path: the package may lie in a zip.
        source = sys.modules[package].__spec__.loader.get_source(package)  # type: ignore[union-attr]  # all our loaders have it
        blocks = [item.body for item in ast.parse(source).body if isinstance(item, ast.If)]
        imports = [item for block in blocks for item in block if isinstance(item, ast.ImportFrom)]
        return {name.name: item.module or "" for item in imports for name in item.names}

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name in homes():
            return getattr(import_module(homes()[name]), name)
        if (at := next((at for at, gone in (moved or {}).items() if name in gone.split()), None)) is not None:
            # Not an AttributeError: 'from … import …' would put a message of its own in the place of this one.
            raise ImportError(f"{name!r} is no longer in {package!r}; write: from {at} import {name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *homes()})

    return get, names


_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


@cache
def install_command(extra: str) -> str:
    """A command to paste. An installation from a folder is told to install from that folder again.

    >>> install_command("serve").endswith("[serve]'")
    True
    """
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and hardly ever needed

    try:
        written = distribution("journeyman").read_text("direct_url.json")
        origin = json.loads(written) if written else {}
    except (PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    if "dir_info" not in origin or not url.startswith("file://"):
        return f"pip install 'journeyman[{extra}]'"
    folder = _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), url.removeprefix("file://").encode()).decode()
    editable = "-e " if origin["dir_info"].get("editable") else ""
    # The quotes are always there: a shell takes the brackets for a pattern.
    named = f"{folder}[{extra}]".replace("'", "'\"'\"'")
    return f"{shlex.quote(sys.executable)} -m pip install {editable}'{named}'"
