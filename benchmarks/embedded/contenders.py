"""Who is asked: each takes a request and gives its calls. None of them runs a tool."""

import asyncio
import resource
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.embedded import weights
from benchmarks.embedded.judging import NOW
from benchmarks.embedded.toolbox import TOOLS
from journeyman.core.messages import Message, ToolCall
from journeyman.core.protocols import Model, ModelRequest
from journeyman.retrieval.bm25 import BM25

Ask = Callable[[str], Awaitable[Sequence[ToolCall]]]
NAMES = ("embedded", "gguf", "retrieval")


class FixedClock:
    """The day the requests were written for."""

    def time(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return NOW

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def contender(name: str) -> Ask:
    if name == "embedded":
        from journeyman.models.embedded import EmbeddedModel

        return _asking(EmbeddedModel(clock=FixedClock(), timeout=600))
    if name == "gguf":
        from journeyman.models.gguf import GgufModel

        return _asking(GgufModel(weights.install(), context=4096))
    return _retrieval()


def memory_mb() -> float:
    """The resident memory of this process and of the engines it started."""
    from journeyman.models.embedded.worker import shared_engines

    return _resident("self") + sum(_resident(str(pid)) for pid in shared_engines().pids())


def _resident(process: str) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _asking(model: Model) -> Ask:
    async def ask(request: str) -> Sequence[ToolCall]:
        answer = await model.respond(ModelRequest(messages=(Message.user(request),), tools=TOOLS, step=1))
        return answer.calls

    return ask


def _retrieval() -> Ask:
    """The tool whose name and description share most words with the request; it has no arguments to give."""
    index = BM25({tool.name: f"{tool.name} {tool.description}" for tool in TOOLS})

    async def ask(request: str) -> Sequence[ToolCall]:
        return [ToolCall(tool_name=name) for name, _ in index.rank(request, k=1)]

    return ask
