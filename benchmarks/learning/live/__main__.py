"""The command line: `python -m benchmarks.learning.live --model http://127.0.0.1:8199/v1#q --arms none teacher`."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from benchmarks.learning.live.arms import ARMS, Arm
from benchmarks.learning.live.measure import measure, text
from benchmarks.learning.live.pretender import Pretender
from benchmarks.learning.live.stays import HOTEL_WORLD
from benchmarks.learning.live.templates import OFFICE_WORLD
from benchmarks.learning.live.world import SPLITS
from journeyman.app.assembly import close_model, model_named

WORLDS = {world.name: world for world in (OFFICE_WORLD, HOTEL_WORLD)}
DEFAULT = ["none", "own", "teacher", "wrong", "poisoned"]


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.live", description=__doc__)
    parser.add_argument(
        "--model", required=True, help="any model by name, or 'pretender' (a script, for trying it out)"
    )
    parser.add_argument(
        "--arms",
        nargs="+",
        default=DEFAULT,
        help=f"of {', '.join(ARMS)}; the first is what others are compared with. With settings after a colon: "
        "teacher:closing=result,demonstrations=2,reminder=false,form=system,finish=true",
    )
    parser.add_argument("--tasks", type=int, help="at most so many tasks, spread over the templates")
    parser.add_argument("--world", choices=WORLDS, default="office")
    parser.add_argument("--split", choices=SPLITS, default="dev", help="tune on dev, report test")
    parser.add_argument("--reworded", action="store_true", help="ask in words that nobody used in practice")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="one part of the tasks, for N processes")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0, help="other instances of the same templates, and another order")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every row and the summary there")
    return parser


async def main(arguments: list[str] | None = None) -> int:
    chosen = options().parse_args(arguments)
    named = [name for item in chosen.arms for name in (item.split(",") if ":" not in item else [item])]
    arms = [Arm.parse(name) for name in named]
    number, parts = map(int, chosen.part.split("/"))
    world, seed = WORLDS[chosen.world], chosen.seed
    tasks = world.asked(chosen.split, chosen.tasks, reworded=chosen.reworded, seed=seed)[number - 1 :: parts]
    model = Pretender() if chosen.model == "pretender" else model_named(chosen.model)
    try:
        report = await measure(
            model,
            arms,
            tasks,
            world.practice(chosen.split, seed=seed),
            split=chosen.split,
            concurrency=chosen.concurrency,
            seed=seed,
            tell=lambda line: print(line, file=sys.stderr),
        )
    finally:
        await close_model(model)
    report |= {"model": chosen.model, "world": chosen.world, "reworded": chosen.reworded, "seed": seed}
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    print(text(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
