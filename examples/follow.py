"""A run as it happens: every fact has a number; texts that grow come in between, without one."""

from __future__ import annotations

import asyncio

from examples.shop import agent, library
from journeyman import stream
from journeyman.testing import ScriptedModel, call, say


async def main() -> None:
    model = ScriptedModel([call("lookup_order", order_id="W-404"), say("There is no order W-404.")])
    async for event in stream(agent, "Where is W-404?", library=library, model=model):
        print(event.seq or "–", event.type)


if __name__ == "__main__":
    asyncio.run(main())
