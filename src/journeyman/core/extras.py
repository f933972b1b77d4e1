"""How to install one of our extras here: the command to print where a package is missing."""

from __future__ import annotations

import json
import re
import shlex
import sys
from functools import cache

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
