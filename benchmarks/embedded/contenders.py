"""Who is asked: each takes a request and its tools and gives its calls. None of them runs a tool."""

import asyncio
import json
import resource
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.embedded import weights
from benchmarks.embedded.answers import RememberedEngines
from benchmarks.embedded.judging import NOW
from journeyman import ToolSpecification
from journeyman.app.finding import how_served, tools_with_chances
from journeyman.choosing import ranking
from journeyman.core.data import moment
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Model, ModelRequest
from journeyman.core.runs import Message, ToolCall
from journeyman.models.embedded import EmbeddedModel
from journeyman.models.embedded.files import engine_files
from journeyman.models.embedded.model import Rank
from journeyman.models.embedded.worker import Engines, Setup
from journeyman.models.wire import alias_names
from journeyman.retrieval.search import BM25

Ask = Callable[[str, Sequence[ToolSpecification]], Awaitable[Sequence[ToolCall]]]
NAMES = ("embedded", "by_words", "raw", "ungated", "gguf", "retrieval")
RAW_GATE = {"raw": 0.5, "ungated": 0.0}
"""What the engine is very unsure of it withholds by itself."""


async def _by_words(text: str, tools: Sequence[ToolSpecification]) -> Sequence[tuple[ToolSpecification, float]]:
    named = {tool.name: tool for tool in tools}
    return [(named[name], chance) for name, chance in (await _words.ranked(text, tools)).tools]


_words = ranking.ToolRanking()
ranking.FIRST_SECONDS = 600.0  # nothing may be compared by words alone while vectors are made
RANKED: dict[str, Rank] = {"embedded": tools_with_chances, "by_words": _by_words}
"""The embedded model with the embedder that is installed, and without any."""


class FixedClock:
    """The day the requests were written for."""

    def time(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return NOW

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def contender(name: str, engines: Engines | None = None) -> Ask:
    engines = engines or RememberedEngines()
    if name in RANKED:
        model = EmbeddedModel(clock=FixedClock(), timeout=600, rank=RANKED[name])
        model._engines = engines
        model.serves = how_served if name == "embedded" else None
        return _asking(model)
    if name in RAW_GATE:
        return _raw(engines, RAW_GATE[name])
    if name == "gguf":
        from journeyman.models.gguf import GgufModel

        return _asking(GgufModel(weights.install(), context=4096))
    return _retrieval


def memory_mb(engines: Engines) -> float:
    """The resident memory of this process and of the engines it started."""
    return _resident("self") + sum(_resident(str(pid)) for pid in engines.pids())


def _resident(process: str) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _asking(model: Model) -> Ask:
    async def ask(request: str, tools: Sequence[ToolSpecification]) -> Sequence[ToolCall]:
        asked = ModelRequest(messages=(Message.user(request),), tools=tuple(tools), step=1)
        try:
            return (await model.respond(asked)).calls
        except ModelError:
            return ()

    return ask


def _raw(engines: Engines, gate: float) -> Ask:
    """The engine as it comes: all tools as they are declared, the request as it is, and its own confidence."""

    async def ask(request: str, tools: Sequence[ToolSpecification]) -> Sequence[ToolCall]:
        names = alias_names([tool.name for tool in tools])
        shown = [
            {
                "name": names.get(tool.name, tool.name),
                "description": tool.description,
                "parameters": tool.parameters,
            }
            for tool in tools
        ]
        system = f"date: {moment(NOW):%Y-%m-%d %a}"
        setup = Setup(files=engine_files(), system=system, tools=json.dumps(shown, ensure_ascii=False))
        try:
            said: dict[str, Any] = await engines.ask(setup, [request])
        except ModelError:
            return ()
        if said.get("confidence", 0) < gate:
            return ()
        ours = {written: name for name, written in names.items()}
        return [
            ToolCall(
                tool_name=ours.get(call["name"], call["name"]),
                arguments=call.get("arguments") or {},
                confidence=said["confidence"],
            )
            for call in said.get("function_calls") or ()
        ]

    return ask


async def _retrieval(request: str, tools: Sequence[ToolSpecification]) -> Sequence[ToolCall]:
    """The tool whose name and description share most words with the request; it has no arguments to give."""
    index = BM25({tool.name: f"{tool.name} {tool.description}" for tool in tools})
    return [ToolCall(tool_name=name) for name, _ in index.rank(request, k=1)]
