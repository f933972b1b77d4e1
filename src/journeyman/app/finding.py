"""How runs choose among many tools and look for what is missing, and what a request asks for (``app.understand``).

Nothing is loaded before the first look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from journeyman.core.gaps import IntentType, ToolGapReport, UserIntent, add_intent_type
from journeyman.core.policy import Principal
from journeyman.core.protocols import Clock, Embedder, Model
from journeyman.core.specification import ToolSpecification
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.choosing.ranking import ToolRanking
    from journeyman.settings.schema import Settings


@cache
def gap_embedder() -> Embedder | None:
    """The one that the detector's weights were found with, whatever a library itself has; it keeps tools' vectors."""
    from journeyman.retrieval.embedders import default_embedder

    return default_embedder()


@cache
def tool_ranking() -> ToolRanking:
    """The one of this process: it keeps what it knows of the tools that it has ranked."""
    from journeyman.choosing.ranking import ToolRanking

    return ToolRanking(embedder=gap_embedder())


async def tools_with_chances(
    text: str, tools: Sequence[ToolSpecification]
) -> Sequence[tuple[ToolSpecification, float]]:
    """Tools with the chance that each serves a text, best first: for a model that can weigh only a few.

    Who asks a question, or to find something, wants nothing changed: where a tool only reads, those that change
    something are left out. And where an order to change something names what one of them does, and yet one that only
    reads comes first, those that only read are.
    """
    from journeyman.choosing import wording
    from journeyman.choosing.actions import LOOKED_UP, asked_actions, is_mere_question, only_reads, tool_actions

    asked, every = asked_actions(text)
    finding = bool(asked) and asked <= {"search", "list"} and every <= LOOKED_UP
    reading = [tool for tool in tools if tool.read_only and (not finding or asked & tool_actions(tool))]
    if reading and (finding or is_mere_question(text)):
        tools = [tool for tool in tools if tool.read_only or (finding and asked & tool_actions(tool))]
    named = {tool.name: tool for tool in tools}
    by_chance = await tool_ranking().ranked(text, tools, patient=True)
    ranked = [(named[name], chance) for name, chance in by_chance.tools]
    wish = wording.wish.match(text)  # "I need the weather" changes nothing
    if ranked and not wish and only_reads(ranked[0][0], asked) and any(asked & tool_actions(tool) for tool in tools):
        return [(tool, chance) for tool, chance in ranked if not only_reads(tool, asked)]
    return ranked


async def how_served(text: str, tools: Sequence[ToolSpecification]) -> Mapping[str, float]:
    """How much speaks for each of some tools, by name, in log odds; nothing for any where nothing is asked for."""
    from journeyman.choosing.gaps import fitting

    return dict((await fitting(text, tools, embedder=gap_embedder())).tools)


@dataclass(frozen=True, slots=True)
class DefaultRanker:
    """Says which tools fit a request, where a run has more than its model is told of; by the library's own embedder
    where it has one."""

    library: ToolLibrary

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> Sequence[str]:
        return await self._ranking().rank(text, tools, k=k)

    def _ranking(self) -> ToolRanking:
        if self.library.embedder is None:
            return tool_ranking()
        if (known := _rankings.get(self.library)) is None:
            from journeyman.choosing.ranking import ToolRanking

            known = _rankings[self.library] = ToolRanking(embedder=self.library.embedder)
        return known


_rankings: WeakKeyDictionary[ToolLibrary, ToolRanking] = WeakKeyDictionary()
"""Of libraries that have an embedder of their own."""


async def find_gap(
    task_text: str,
    tools: Sequence[ToolSpecification] | ToolLibrary,
    confidence: float | None,
    *,
    model: Model | None = None,
) -> ToolGapReport | None:
    """What is missing among the tools that a run could use."""
    from journeyman.choosing.gaps import ToolGapDetector

    return await ToolGapDetector(tools, embedder=gap_embedder(), model=model).detect(task_text, confidence=confidence)


# --- intents


async def understand(
    text: str,
    library: ToolLibrary,
    *,
    principal: Principal | None = None,
    context: Mapping[str, Any] | None = None,
    model: Model | None = None,
    clock: Clock | None = None,
) -> UserIntent | None:
    """What a request asks for; None where it asks for nothing, or for nothing of a known type."""
    from journeyman.choosing.intents import IntentReader

    tools = [
        tool
        for tool in library.specifications()
        if all(principal is not None and principal.may(permission) for permission in tool.permissions)
    ]
    reader = IntentReader(tools, embedder=gap_embedder(), ranking=tool_ranking(), model=model, clock=clock)
    return await reader.read(text, context=context)


def add_configured(settings: Settings) -> list[IntentType]:
    """Let intents be of the types that a configuration names; whoever calls this removes them again."""
    return [add_intent_type(IntentType(name=name, **kind.model_dump())) for name, kind in settings.intents.items()]


def explain_choice() -> Sequence[str]:
    """What was looked at to find a model here, line by line; the last one says what was found."""
    from journeyman.models.resolve import explain_choice as explained

    return explained()
