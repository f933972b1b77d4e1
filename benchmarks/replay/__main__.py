"""``python -m benchmarks.replay [--quick]``: tests made of 50 runs, forks of 200. Exit 1 on a miss."""

import argparse
import asyncio
import os

os.environ.setdefault("JOURNEYMAN_LOG", "off")

from benchmarks.replay import forks, written


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    quick = parser.parse_args().quick
    return max(asyncio.run(written.measure(quick=quick)), asyncio.run(forks.measure(quick=quick)))


if __name__ == "__main__":
    raise SystemExit(main())
