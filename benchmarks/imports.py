"""What `import journeyman` costs in CPU beside `import pydantic`, and which heavy packages it drags in.

Every import happens in a fresh interpreter, after one that is thrown away so that byte code is compiled; the time is
taken inside it, so that the interpreter's own start makes no ratio look better. Run with `-m benchmarks.imports`.
"""

import argparse
import json
import random
import subprocess
import sys
from statistics import median

REPETITIONS = 9
TARGET = 4.0
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
    passed = ratio <= TARGET and not early
    if chosen.json:
        figures = {"repetitions": repetitions, "ratio": ratio, "target": TARGET, "loaded_too_early": early}
        figures["loaded_by_every_name"] = in_all
        print(json.dumps({**figures, "passed": passed}, indent=1))
    else:
        for name in STATEMENTS:
            print(f"{name:24} {median(measured[name] for measured in repetitions) * 1000:6.0f} ms CPU")
        print(f"{'pass' if ratio <= TARGET else 'FAIL'}  journeyman / pydantic: {ratio:.2f} (target ≤ {TARGET:g})")
        print(f"{'FAIL' if early else 'pass'}  loaded too early: {', '.join(early) or 'nothing'}")
        print(f"      loaded once every name is used: {', '.join(in_all) or 'nothing'}")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
