"""``journeyman doctor``: what was found here, and what to do about what is missing.

Asks nobody but the store and, where no model is named, the usual ports of this machine.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shlex
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.text import Text

from journeyman.app.configuration import Configuration
from journeyman.app.finding import explain_choice
from journeyman.app.loading import file_of, is_there, open_at
from journeyman.app.trust import names_in, reasons
from journeyman.core.approvals import ApprovalStatus
from journeyman.core.calls import Secrets
from journeyman.core.errors import JourneymanError
from journeyman.core.lazy import install_command
from journeyman.core.runs import UNFINISHED
from journeyman.doors.cli import screen
from journeyman.doors.cli.configured import chosen_file, is_found
from journeyman.doors.cli.loading import command, opened, without_password
from journeyman.doors.cli.options import DEFAULT_STORE, LOG_VARIABLE, Json, Store, default_store
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.trust import trust_command, unconfirmed
from journeyman.settings.problems import SettingsError
from journeyman.settings.reading import read_settings

STORE_SECONDS = 2.0
"""How long the store may take to answer."""
MOST_COUNTED = 1_000

_NEEDS = re.compile(r"""^\s*([\w.-]+).*;.*\bextra\s*==\s*['"]([\w-]+)['"]""")


def doctor(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Say what was found here, and what to do about what is missing."""
    if store == DEFAULT_STORE:
        with suppress(SettingsError):  # what is wrong with the file is told below
            store = default_store()
    found = _examine(store)
    if as_json:
        return screen.print_json(found)
    table = screen.listing("", "", "")
    table.show_header, table.columns[1].style = False, "bold"
    good, poor, plain = Text("✓", "green"), Text("!", "yellow"), Text("·", "dim")
    table.add_row(good, "journeyman", found["journeyman"])
    table.add_row(good, "python", f"{found['python']} on {found['platform']}")
    config = found["config"]
    table.add_row(plain if config["file"] is None else poor if config["problems"] else good, "config", config["told"])
    for line in config["problems"]:
        table.add_row("", "", Text(line, style="yellow"))
    model = found["model"]
    table.add_row(good if model["found"] else poor, "model", model["auto"])
    for line in model["because"]:
        table.add_row("", "", Text(line, style="dim"))
    if not model["found"]:
        table.add_row("", "", Text("or name one: journeyman run --model ollama:NAME …", style="dim"))
    for extra, state in found["extras"].items():
        text = "installed" if state["installed"] else f"not installed; {install_command(extra)}"
        table.add_row(good if state["installed"] else plain, f"extra {extra}", text)
    kept = found["store"]
    table.add_row(poor if not kept["healthy"] else good if kept["found"] else plain, "store", kept["told"])
    if kept.get("readable_by_others"):
        table.add_row(poor, "", f"others on this machine can read it: chmod 600 {shlex.quote(kept['file'])}*")
    secrets = ", ".join(found["secrets"]) or "none; set JOURNEYMAN_SECRET_NAME for a tool that needs NAME"
    table.add_row(good if found["secrets"] else plain, "secrets", secrets)
    logs = found["logs"]
    table.add_row(plain, "logs", f"off; {LOG_VARIABLE}=info turns them on" if logs == "off" else logs)
    screen.console().print(table)
    return None


def _examine(url: str) -> dict[str, Any]:
    """The findings, as data."""
    *looked_at, choice = explain_choice()
    found = choice.removeprefix("auto: ")
    return {
        "journeyman": metadata.version("journeyman"),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "config": _config_findings(),
        "model": {"auto": found, "found": not found.startswith("nothing found"), "because": looked_at},
        "extras": _extras(),
        "store": asyncio.run(_store_findings(url)),
        "secrets": sorted(Secrets.from_environment()),
        "logs": os.environ.get(LOG_VARIABLE) or "off",
    }


def _config_findings() -> dict[str, Any]:
    """Whether the configuration file can be used. A service that runs goes by the last version that could."""
    path = chosen_file()
    if path is None:
        return {"file": None, "problems": [], "told": "no journeyman.yaml here; 'journeyman init' writes one"}
    try:
        if is_found() and (new := unconfirmed(path, names_in(read_settings(path)))):
            told = f"{path} {'; '.join(reasons(new))}, and nobody has confirmed it: '{trust_command(path)}'"
            return {"file": str(path), "problems": [told], "told": f"{path} is not used before it is confirmed"}
        with printing_to_stderr():
            found = Configuration(path)
    except SettingsError as error:
        problems = [str(item) for item in error.problems]
        told = f"{path} cannot be used; what runs already goes on with the last version that could"
        return {"file": str(path), "problems": problems, "told": told}
    said = found.settings
    unjudged = "; where values flow is not judged (approvals.flow: off)" if said.approvals.flow == "off" else ""
    return {"file": str(path), "problems": [], "told": f"{path}, environment {said.environment}{unjudged}"}


async def _store_findings(url: str) -> dict[str, Any]:
    """Whether the store is there and can be used, and what waits in it."""
    shown = without_password(url)
    found: dict[str, Any] = {"url": shown, "found": False, "healthy": True}
    if (file := file_of(url)) is not None:
        files = (Path(f"{file}{suffix}") for suffix in ("", "-wal", "-shm"))
        readable = os.name == "posix" and any(each.exists() and each.stat().st_mode & 0o077 for each in files)
        found |= {"file": str(file), "readable_by_others": readable}
    if not is_there(url):
        return {**found, "told": f"none yet: runs live in memory; run --durable keeps them in {shown}"}
    try:
        async with opened(open_at(url, retry_seconds=STORE_SECONDS), upgrade=False) as store:
            found |= {"found": True, "schema_version": (version := await store.schema_version())}
            if version != store.latest_version:
                told = f"schema version {version}, this program works with {store.latest_version}"
                hint = command(url, "db upgrade") if version < store.latest_version else "update the program"
                return {**found, "healthy": False, "told": f"{told}; {hint}"}
            runs = await store.runs.list(statuses=UNFINISHED, limit=MOST_COUNTED)
            asked = await store.approvals.list(status=ApprovalStatus.PENDING, limit=MOST_COUNTED)
    except JourneymanError as error:
        return {**found, "healthy": False, "told": str(error)}
    pending = [item for item in asked if item.expires_at.timestamp() > time.time()]
    told = f"{_most(len(runs))} unfinished, {_most(len(pending))} waiting for approval"
    counts = {"unfinished_runs": len(runs), "pending_approvals": len(pending)}
    return {**found, **counts, "told": f"{shown}, schema version {version}; runs: {told}"}


def _most(number: int) -> str:
    return f"{MOST_COUNTED} or more" if number == MOST_COUNTED else str(number)


def _extras() -> dict[str, dict[str, Any]]:
    """Every extra of the package, and which of its packages are not there."""
    needed: dict[str, list[str]] = {}
    for line in metadata.requires("journeyman") or []:
        if (found := _NEEDS.match(line)) and found[2] != "all":
            needed.setdefault(found[2], []).append(found[1])
    missing = {
        extra: [name for name in names if not any(metadata.distributions(name=name))] for extra, names in needed.items()
    }
    return {extra: {"installed": not names, "missing": names} for extra, names in sorted(missing.items())}
