"""Weights as in ``journeyman/choosing/small_talk.json``: logistic regression over vectors of requests and of chatter.

``python -m benchmarks.gaps.talk_weights FOLDER``; the folder is ``chatterbot_corpus/data/english`` of chatterbot-corpus
(github.com/gunthercox/chatterbot-corpus). Requests are BFCL's tuning half. The chatter is without the lines of
``chatterbot.txt``. The weights that ship are older than this script, and what they were fitted on is not recorded. Both
are measured on ``small_talk.txt``, ``chatterbot.txt`` and BFCL's held-out half. ``--write`` replaces the file.
"""

import argparse
import asyncio
import json
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from benchmarks.gaps import corpus
from benchmarks.gaps.vectors import RememberedVectors
from benchmarks.gaps.weights import regression
from journeyman.choosing import actions as small_talk
from journeyman.choosing.actions import IN_DOUBT, asks_for_something

FILES = ("greetings", "conversations", "botprofile", "emotion")
Rows = NDArray[np.float64]


def chatter(folder: Path) -> list[str]:
    """What is said in the corpus, without the lines that are measured on."""
    measured = set(corpus.talk("corpus"))
    found = [
        str(line).removeprefix("- ").strip()
        for name in FILES
        for talk in yaml.safe_load((folder / f"{name}.yml").read_text(encoding="utf-8"))["conversations"]
        for line in talk
    ]
    return [line for line in dict.fromkeys(found) if line and line not in measured]


def requests(half: corpus.Half) -> list[str]:
    return list(dict.fromkeys(case.request for case in corpus.load() if case.half == half))


async def vectors(embedder: RememberedVectors, texts: list[str]) -> Rows:
    return np.asarray(await embedder.embed(texts), dtype=np.float64)


async def measured(embedder: RememberedVectors, fitted: Rows) -> dict[str, float]:
    """The share of lines that count as said in passing: by the vectors alone, and as the product tells it."""

    async def share(lines: list[str]) -> tuple[float, float]:
        passing = (await vectors(embedder, lines)) @ fitted[1:] + fitted[0] > IN_DOUBT
        either = [bool(own) or not asks_for_something(line) for own, line in zip(passing, lines, strict=True)]
        return float(passing.mean()), float(np.mean(either))

    kinds = {"written": corpus.talk("written"), "corpus": corpus.talk("corpus"), "requests": requests("held_out")}
    told = {}
    for name, lines in kinds.items():
        told[f"{name}, vectors"], told[f"{name}, product"] = await share(lines)
    return told


WEIGHTS = Path(small_talk.__file__).with_name(small_talk.WEIGHTS)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="replace the weights that ship")
    given = parser.parse_args()
    embedder = RememberedVectors()
    talk, asked = chatter(given.folder), requests("tune")
    rows = np.concatenate([await vectors(embedder, talk), await vectors(embedder, asked)])
    fitted = np.round(regression(rows, np.r_[np.ones(len(talk)), np.zeros(len(asked))]), 3)
    embedder.save()
    read = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    ships = np.r_[read["bias"], read["weights"]]
    print(f"{len(talk)} lines of chatter, {len(asked)} requests; share that counts as said in passing:")
    old, new = await measured(embedder, ships), await measured(embedder, fitted)
    for name, value in old.items():
        print(f"  {name:20} ships {value:.3f}  fitted {new[name]:.3f}")
    sizes = np.linalg.norm(ships[1:]) * np.linalg.norm(fitted[1:])
    print(f"  cosine of the weights: {ships[1:] @ fitted[1:] / sizes:.3f}")
    if given.write:
        found = json.dumps({"bias": float(fitted[0]), "weights": fitted[1:].tolist()}) + "\n"
        await asyncio.to_thread(WEIGHTS.write_text, found, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
