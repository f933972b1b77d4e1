"""Runs the official MCP conformance suite against our server and our client, one scenario after another.

    python -m scripts.mcp_conformance [--side server|client] [--version 2025-11-25] [--scenario NAME]... [--suite FILE]
                                      [--all]
    python -m scripts.mcp_conformance --behind URL [--version 2025-11-25] [--scenario NAME]...

The suite (npm ``@modelcontextprotocol/conformance``, pinned) and Node are installed into `.bench`, unless ``--suite``
names another one's ``dist/index.js`` and ``--node`` a Node 22 or newer. Exits with 1 where a scenario that applies
fails. What does not apply is listed here, with the reason; ``docs/mcp.md`` has the same table. A scenario of which the
suite skips everything, or only warns, is neither passed nor failed: it is counted apart. With ``--all`` nothing is left
out.

With ``--behind``, the gateway stands in front of a server that others wrote, such as the SDK's ``everything-server``:
then every scenario of both versions is run, none is left out, and what passes is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from benchmarks.mcp import registry

ROOT = Path(__file__).parents[1]
SUITE = Path("@modelcontextprotocol/conformance/dist/index.js")
VERSIONS = ("2025-11-25", "2026-07-28")
EXTENSION = "extension"
"""What the suite says of scenarios that belong to no version: they are run with the newest."""
Side = Literal["server", "client"]
VERDICTS = {"pass": "passed", "FAIL": "failed", "skip": "not shown by the suite"}

NO_SKILLS = "The extension for skills is not offered"
OTHER_GRANT = "An extension of OAuth that the package `mcp` does not have; `auth=` takes any implementation"
ALWAYS = "wire-schema-valid"
"""A check that every scenario has: alone it shows nothing of the scenario."""

NOT_APPLICABLE: dict[Side, dict[str, str]] = {
    "server": {
        "server-sse-polling": "Streams are not cut in order to be polled: a call that takes long is a task, and a call "
        "made again is answered by the run that it has begun",
        "input-required-result-ignore-extra-params": "A warning: the suite answers before it was asked, and an answer "
        "counts only where its question was shown. What is not asked is ignored beside an answer that was",
        "tasks-status-notifications": "The suite skips it itself: it has no test for this yet. Tasks are polled here",
        **dict.fromkeys(
            ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"], NO_SKILLS
        ),
    },
    "client": {
        "http-custom-headers": "17 of its 18 checks pass; the other wants a call with null where "
        "the tool's schema has no null, and such a call is refused before it is sent",
        **dict.fromkeys(
            ["auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer"],
            OTHER_GRANT,
        ),
        **dict.fromkeys(
            [
                "sep-2640-client-no-prefetch",
                "sep-2640-client-verify-digest",
                "sep-2640-client-verify-size",
                "sep-2640-client-verify-frontmatter",
            ],
            NO_SKILLS,
        ),
    },
}


def table() -> str:
    """What does not apply, as the documentation shows it."""
    lines = ["| side | scenarios | why they do not apply |", "|---|---|---|"]
    for side, reasons in NOT_APPLICABLE.items():
        for why in dict.fromkeys(reasons.values()):
            names = ", ".join(f"`{name}`" for name, reason in reasons.items() if reason == why)
            lines.append(f"| {side} | {names} | {why} |")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    options = _options(words)
    suite = [options.node or str(registry.node()), str(options.suite or registry.npm_packages("clients") / SUITE)]
    listed = subprocess.run([*suite, "list"], capture_output=True, text=True, check=True).stdout
    failed, counts = [], Counter[str]()
    sides: tuple[Side, ...] = ("server", "client") if options.side is None else (options.side,)
    for side in sides:
        for version in [options.version] if options.version else VERSIONS:
            with _server(options.behind, version) if side == "server" else _no_server() as url:
                for name in options.scenario or _scenarios(listed, side, version, extensions=options.behind is None):
                    left_out = not (options.scenario or options.all or options.behind)
                    if left_out and name in NOT_APPLICABLE[side]:
                        continue
                    verdict, said = _verdict(suite, side, name, version, url)
                    counts[verdict] += 1
                    print(f"{verdict}  {side}  {version}  {name}  {said}", flush=True)
                    if verdict == "FAIL":
                        failed.append(f"{side} {version} {name}")
    told = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items())
    print(f"of {counts.total()}: {told}" + "".join(f"\n  {name}" for name in failed))
    return 1 if failed else 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", choices=["server", "client"])
    parser.add_argument("--version", choices=VERSIONS)
    parser.add_argument("--scenario", action="append", default=[])
    parser.add_argument("--all", action="store_true", help="also what does not apply")
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--node")
    parser.add_argument("--behind", metavar="URL", help="a server that the gateway stands in front of")
    options = parser.parse_args(words)
    if options.behind is not None:
        options.side = "server"
    return options


def _scenarios(listed: str, side: str, version: str, *, extensions: bool) -> list[str]:
    """The scenarios of one side that a version of the protocol has; extensions with the newest."""
    part = re.search(rf"^{side.capitalize()} scenarios.*?\n(.*?)(?:\n\n|\Z)", listed, re.DOTALL | re.MULTILINE)
    found = re.findall(r"^ *- (\S+) \[(.*?)\]$", part[1] if part else "", re.MULTILINE)
    extensions = extensions and version == VERSIONS[-1]
    return [name for name, versions in found if version in versions or (extensions and versions == EXTENSION)]


def _verdict(suite: list[str], side: str, name: str, version: str, url: str) -> tuple[str, str]:
    """What the suite says: a key of ``VERDICTS``, and its counts."""
    if side == "server":
        target = ["--url", url]
    else:
        target = ["--command", f"{sys.executable} {ROOT / 'tests/sources/conformance_client.py'}"]
    # By force, since an extension is of no version.
    command = [*suite, side, *target, "--scenario", name, "--spec-version", version, "--timeout", "120000", "--force"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    return verdict(done.returncode, done.stdout + done.stderr)


def verdict(code: int, told: str) -> tuple[str, str]:
    """What the suite's output comes to. Where no check of the scenario's own was met, nothing was shown."""
    told = re.sub(r"\x1b\[\d*m", "", told)
    said = re.findall(r"Passed: (\d+/\d+, \d+ failed[^\n]*)", told)
    if code != 0:
        return "FAIL", said[-1] if said else ""
    shown = re.findall(r"\[(\S+) *\] SUCCESS ", told)
    return ("pass", said[-1]) if set(shown) - {ALWAYS} else ("skip", "")


@contextmanager
def _no_server() -> Iterator[str]:
    yield ""


@contextmanager
def _server(behind: str | None, version: str) -> Iterator[str]:
    """Our server with the tools that the suite calls; or before another server, whose tools the operator has graded."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "mcp",
            "serve",
            "--http",
            "--port",
            "0",
            "--insecure-no-token",
            "--store",
            f"sqlite:///{folder}/runs.db",
        ]
        if behind is None:
            words += ["--library", "tests.doors.mcp.conformance_library:library"]
        else:
            server = {"url": behind, "allow": ["sampling", "roots"], "protocol": version}
            configuration = {"version": 1, "mcp": {"suite": server}, "tools": {"suite.*": {"risk": "reversible"}}}
            Path(folder, "journeyman.yaml").write_text(json.dumps(configuration))  # JSON is YAML, too
            words += ["--config", f"{folder}/journeyman.yaml", "--bare-names"]
        program = [sys.executable, "-c", "from journeyman.doors.cli import main; main()", *words]
        with subprocess.Popen(program, stderr=subprocess.PIPE, text=True, env=_environment(), cwd=ROOT) as process:
            try:
                assert process.stderr is not None
                said = process.stderr.readline()
                found = re.search(r"http://\S+/mcp", said)
                if found is None:
                    raise SystemExit(f"the server did not start: {said}{process.stderr.read()}")
                yield found[0]
            finally:
                process.terminate()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


if __name__ == "__main__":
    sys.exit(main())
