"""Without any model: what a teacher's playbook tells tasks in wordings that practice never had.

`python -m benchmarks.learning.live.told --world hotel --split dev`: for how many tasks the strategy is the right one,
how many of the told values are right, and for how many the call is suggested; with the embedder, and by words alone.
"""

import argparse
import asyncio
from collections import Counter

from benchmarks.learning.live.__main__ import WORLDS
from benchmarks.learning.live.arms import Arm, taught
from benchmarks.learning.live.world import SPLITS, World
from journeyman.learning.playbook import Playbook


async def counted(world: World, split: str, *, words_alone: bool, seed: int = 0) -> Counter[str]:
    settings = Arm.parse("teacher").settings
    embedder = {"embedder": None} if words_alone else {}
    playbook = Playbook(world.name, settings=settings, **embedder)  # type: ignore[arg-type]
    await playbook.learn([await taught(task) for task in world.practice(split, seed=seed)], taught=True)
    found: Counter[str] = Counter()
    for task in world.asked(split, reworded=True, seed=seed):
        given = await playbook.advise(task.request, tools=[item.name for item in world.tools])
        guide = next((item for item in reversed(given) if item.steps), None)
        if guide is None:
            found["no strategy"] += 1
            continue
        right = {step.tool_name for step in guide.steps} == {name for name, _ in task.calls}
        found["right strategy" if right else "wrong strategy"] += 1
        found["call suggested" if right else "wrong call suggested"] += guide.alike
        for step, (_, wanted) in zip(guide.steps, task.calls, strict=False):
            for name, value in (step.given if right else {}).items():
                found["right values" if str(wanted.get(name)) == str(value) else "wrong values"] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.live.told", description=__doc__)
    parser.add_argument("--world", choices=WORLDS, default="hotel")
    parser.add_argument("--split", choices=SPLITS, default="dev", help="tune on dev")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for name, words_alone in (("embedder", False), ("words alone", True)):
        found = asyncio.run(counted(WORLDS[chosen.world], chosen.split, words_alone=words_alone, seed=chosen.seed))
        print(f"{name}: {', '.join(f'{what} {count}' for what, count in sorted(found.items()))}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
