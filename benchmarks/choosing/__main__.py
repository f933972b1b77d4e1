"""The command line: ``python -m benchmarks.choosing PART``, each part in a module of its name."""

import importlib
import sys
from pathlib import Path

PARTS = ("accuracy", "cost")


def main() -> int:
    there = [part for part in PARTS if Path(__file__).with_name(f"{part}.py").exists()]
    if len(sys.argv) < 2 or sys.argv[1] not in there:
        print(f"usage: python -m benchmarks.choosing {{{','.join(there)}}} [options]", file=sys.stderr)
        return 2
    part = importlib.import_module(f"benchmarks.choosing.{sys.argv[1]}")
    passed: int = part.main(sys.argv[2:])
    return passed


if __name__ == "__main__":
    raise SystemExit(main())
