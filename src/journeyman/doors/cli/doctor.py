"""``journeyman doctor``: what was found here, and what to do about what is missing. Asks nobody, changes nothing."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from typing import Any

from rich.table import Table
from rich.text import Text

from journeyman.app import explain_choice
from journeyman.core.context import Secrets
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import LOG_VARIABLE

_NEEDS = re.compile(r"""^\s*([\w.-]+).*;.*\bextra\s*==\s*['"]([\w-]+)['"]""")


def examine() -> dict[str, Any]:
    """The findings, as data."""
    *variables, choice = explain_choice()
    found = choice.removeprefix("auto: ")
    return {
        "journeyman": metadata.version("journeyman"),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "model": {"auto": found, "found": not found.startswith("nothing found"), "because": variables},
        "extras": extras(),
        "store": "none yet: runs live in memory",
        "secrets": sorted(Secrets.from_environment()),
        "logs": os.environ.get(LOG_VARIABLE) or "off",
    }


def extras() -> dict[str, dict[str, Any]]:
    """Every extra of the package, and which of its packages are not there."""
    needed: dict[str, list[str]] = {}
    for line in metadata.requires("journeyman") or []:
        if (found := _NEEDS.match(line)) and found[2] != "all":
            needed.setdefault(found[2], []).append(found[1])
    missing = {extra: [name for name in names if not _installed(name)] for extra, names in needed.items()}
    return {extra: {"installed": not names, "missing": names} for extra, names in sorted(missing.items())}


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def doctor(*, as_json: bool) -> None:
    found = examine()
    if as_json:
        return screen.print_json(found)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    good, poor, plain = Text("✓", "green"), Text("!", "yellow"), Text("·", "dim")
    table.add_row(good, "journeyman", found["journeyman"])
    table.add_row(good, "python", f"{found['python']} on {found['platform']}")
    model = found["model"]
    table.add_row(good if model["found"] else poor, "model", model["auto"])
    for line in model["because"]:
        table.add_row("", "", Text(line, style="dim"))
    if not model["found"]:
        table.add_row("", "", Text("or name one: journeyman run --model ollama:NAME …", style="dim"))
    for extra, state in found["extras"].items():
        told = "installed" if state["installed"] else f"not installed; pip install 'journeyman[{extra}]'"
        table.add_row(good if state["installed"] else plain, f"extra {extra}", told)
    table.add_row(plain, "store", found["store"])
    secrets = ", ".join(found["secrets"]) or "none; set JOURNEYMAN_SECRET_NAME for a tool that needs NAME"
    table.add_row(good if found["secrets"] else plain, "secrets", secrets)
    logs = found["logs"]
    table.add_row(plain, "logs", f"off; {LOG_VARIABLE}=info turns them on" if logs == "off" else logs)
    screen.console().print(table)
    return None
