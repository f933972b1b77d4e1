"""``app.understand``: what a request asks for, among the tools that a principal may use. Nothing is run for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from journeyman.app.finding import gap_embedder, tool_ranking
from journeyman.core.intents import IntentType, UserIntent, add_intent_type
from journeyman.core.principals import Principal
from journeyman.core.protocols import Clock, Model
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.settings.schema import Settings


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
    from journeyman.memory.intents import IntentReader

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
