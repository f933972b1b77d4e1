"""Plain sentences in two languages: what share of served ones is reported as a gap, and of unserved ones is missed.

`sets/` has requests to four tools of research and to a shop's, written down before anything was tuned on them, and a
voice assistant's own German test sentences: half of its tools are offered, and then the other half; and German
sentences of a public collection about alarms and leisure, held out. The English sentences of `benchmarks.embedded`
count as well, those of its held-out kinds as held out.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.embedded.kinds import load
from benchmarks.embedded.sets import FIRST_SENTENCES, HELD_OUT, SETS, read_tools
from journeyman import ToolSpecification, tool
from journeyman.choosing import ranking
from journeyman.choosing.gaps import ToolGapDetector
from journeyman.retrieval.embedders import default_embedder

FOLDER = Path(__file__).parent / "sets"
MOST_FALSE, MOST_MISSED = 0.10, 0.05


@tool(read_only=True)
def web_search(query: str) -> str:
    """Search the web and return the best pages."""
    raise NotImplementedError


@tool(read_only=True)
def read_file(path: str) -> str:
    """Read a file and return its text."""
    raise NotImplementedError


@tool(read_only=True)
def get_current_time() -> str:
    """Tell the date and time."""
    raise NotImplementedError


@tool(read_only=True)
def search_memory(query: str) -> str:
    """Search what the user has told before."""
    raise NotImplementedError


RESEARCH = [each.specification for each in (web_search, read_file, get_current_time, search_memory)]
CLOCK = read_tools(FOLDER / "clock.tools.json")
OFFERED: dict[str, Sequence[ToolSpecification]] = {
    "research": RESEARCH,
    "shop": SETS["shop"],
    "voice": SETS["voice"],
    "first": SETS["voice"][::2],
    "second": SETS["voice"][1::2],
    "clock": CLOCK[:5],
    "leisure": CLOCK[5:],
}
Group = tuple[str, str, bool, Sequence[ToolSpecification], list[str]]
"""Half, language, whether a tool serves them, the tools, the sentences."""


def groups() -> Iterator[Group]:
    for name in ("research", "shop", "voice", "clock"):
        text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
        for part in text.split("[")[1:]:
            title, _, rest = part.partition("]")
            tools = OFFERED.get(title[3:].partition("_")[0], OFFERED[name])
            half = "held out" if name == "clock" else "tuning"
            yield half, title[:2], title.endswith("served"), tools, rest.split("\n")[1:-1]
    for kind in FIRST_SENTENCES:
        cases = load(kind)
        for served in (True, False):
            lines = [case.request for case in cases if case.outside != served]
            yield "held out" if kind in HELD_OUT else "tuning", "en", served, cases[0].tools, lines


async def main() -> int:
    ranking.FIRST_SECONDS = 600.0
    failed = False
    for how, embedder in (("with the embedder", default_embedder()), ("words alone", None)):
        counts: dict[tuple[str, str, bool], tuple[int, int]] = {}
        for half, language, served, tools, lines in groups():
            detector = ToolGapDetector(tools, embedder=embedder)
            wrong = sum([(await detector.detect(line) is not None) == served for line in lines])
            before, of = counts.get((half, language, served), (0, 0))
            counts[half, language, served] = before + wrong, of + len(lines)
        for (half, language, served), (wrong, of) in sorted(counts.items()):
            most = MOST_FALSE if served else MOST_MISSED
            failed |= embedder is not None and wrong > most * of
            print(f"{how:18} {half:9} {language} {'reported though served' if served else 'missed':22} {wrong} of {of}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
