"""What `import journeyman` costs in CPU beside `import pydantic`, what it loads, and what `--help` costs.

Every import happens in a fresh interpreter, after one that is thrown away so that byte code is compiled; the time is
taken inside it, so that the interpreter's own start makes no ratio look better. Run with `-m benchmarks.imports`.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

from journeyman.doors.cli import kept_helps

REPETITIONS = 9
TARGET = 4.0
MOST_MODULES, MOST_LINES = 95, 13_000
"""Of this package, loaded by `from journeyman import Journeyman`."""
HELP_SECONDS = 0.3
STATEMENTS = {
    "pydantic": "import pydantic",
    "journeyman": "import journeyman",
    "journeyman, every name": "from journeyman import *",
}
LATER = (
    "aiohttp",
    "httpx",
    "requests",
    "openai",
    "anthropic",
    "google.genai",
    "mcp",
    "slack_bolt",
    "fastapi",
    "starlette",
    "uvicorn",
    "numpy",
    "scipy",
    "torch",
    "faiss",
    "onnxruntime",
    "wordllama",
    "tree_sitter",
    "sqlalchemy",
    "aiosqlite",
    "asyncpg",
    "psycopg",
    "opentelemetry.sdk",
    "griffe",
    "typer",
    "rich",
)
"""Packages that somebody who only imports the library must not pay for."""


def cpu_seconds(statement: str) -> float:
    program = f"import time\nstart = time.process_time()\n{statement}\nprint(time.process_time() - start)"
    return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


def loaded_here(statement: str) -> tuple[list[str], int]:
    """The modules of this package that a statement loads, and the lines of their files."""
    ours = "{name: part.__file__ for name, part in sys.modules.items() if name.split('.')[0] == 'journeyman'}"
    program = f"import json, sys\n{statement}\nprint(json.dumps({ours}))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    files: dict[str, str] = json.loads(done.stdout)
    return sorted(files), sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in files.values())


def help_seconds() -> dict[str, float]:
    """The CPU that ``--help`` of each command takes, from the interpreter's start to its end."""
    found = {}
    for words in kept_helps():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        line = [sys.executable, "-m", "journeyman", *words.split(), "--help"]
        subprocess.run(line, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found[f"journeyman {words}".strip()] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found


def heavy_packages(statement: str) -> list[str]:
    program = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return [name for name in LATER if name in json.loads(done.stdout)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    chosen = parser.parse_args()
    for statement in STATEMENTS.values():
        cpu_seconds(statement)
    repetitions = [
        {name: cpu_seconds(STATEMENTS[name]) for name in random.sample(list(STATEMENTS), len(STATEMENTS))}
        for _ in range(REPETITIONS)
    ]
    ratio = median(measured["journeyman"] / measured["pydantic"] for measured in repetitions)
    early = heavy_packages(STATEMENTS["journeyman"])
    in_all = heavy_packages(STATEMENTS["journeyman, every name"])
    modules, lines = loaded_here("from journeyman import Journeyman")
    small = len(modules) <= MOST_MODULES and lines <= MOST_LINES
    helps = help_seconds()
    slowest = max(helps, key=lambda name: helps[name])
    quick = helps[slowest] <= HELP_SECONDS
    passed = ratio <= TARGET and not early and small and quick
    if chosen.json:
        figures = {"repetitions": repetitions, "ratio": ratio, "target": TARGET, "loaded_too_early": early}
        figures["loaded_by_every_name"] = in_all
        figures |= {"modules": len(modules), "lines": lines, "help_seconds": helps}
        print(json.dumps({**figures, "passed": passed}, indent=1))
    else:
        for name in STATEMENTS:
            print(f"{name:24} {median(measured[name] for measured in repetitions) * 1000:6.0f} ms CPU")
        print(f"{'pass' if ratio <= TARGET else 'FAIL'}  journeyman / pydantic: {ratio:.2f} (target ≤ {TARGET:g})")
        amount = f"{len(modules)} modules, {lines:,} lines (target ≤ {MOST_MODULES}, {MOST_LINES:,})"
        print(f"{'pass' if small else 'FAIL'}  from journeyman import Journeyman: {amount}")
        cost = f"{helps[slowest] * 1000:.0f} ms CPU (target ≤ {HELP_SECONDS * 1000:.0f})"
        print(f"{'pass' if quick else 'FAIL'}  {slowest} --help, the slowest of {len(helps)}: {cost}")
        print(f"{'FAIL' if early else 'pass'}  loaded too early: {', '.join(early) or 'nothing'}")
        print(f"      loaded once every name is used: {', '.join(in_all) or 'nothing'}")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
