"""The answer where the model writes none: what its calls came to, rendered for people."""

from __future__ import annotations

import asyncio

from journeyman.agent.run import Run
from journeyman.agent.state import RunState, Turn
from journeyman.core.specification import RESERVED_NAMES
from journeyman.execution.rendering import own_words


async def renderings(run: Run, turn: Turn) -> dict[str, str] | None:
    """By call: what the tools of a turn say of their calls; None where none of them has a ``render``."""
    tools = run.offer.tools
    asked = [call for call in turn.calls if (tool := tools.get(call.tool_name)) is not None and tool.render is not None]
    if not asked:
        return None
    said = await asyncio.gather(
        *(
            own_words(tools.get(call.tool_name), turn.records[call.id], run.executor.invoker, run_id=run.id)
            for call in asked
        )
    )
    return {call.id: words for call, words in zip(asked, said, strict=True) if words} or None


def answer_from_results(state: RunState) -> str:
    """What the run's calls came to; nothing where it has made none."""
    from journeyman.core.rendering import composed  # only models that write no prose need it

    records = (record for step in state.steps for record in step.calls if record.tool_name not in RESERVED_NAMES)
    return composed(records, state.renderings)
