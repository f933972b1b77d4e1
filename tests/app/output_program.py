"""A run that must give data, to be killed anywhere and run again: ``python -m tests.app.output_program STORE``."""

from __future__ import annotations

import asyncio
import sys

from pydantic import BaseModel, field_validator

from journeyman import Agent, Journeyman, tool
from journeyman.stores.store import open_store
from journeyman.testing import ScriptedModel, call, crashing

RUN = "run_of_the_order"


class Order(BaseModel):
    id: str
    total: float
    currency: str = "EUR"

    @field_validator("total")
    @classmethod
    def _positive(cls, value: float) -> float:
        if value <= 0:
            raise ValueError("must be positive")
        return value


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


AGENT = Agent(name="clerk", instruction="Look orders up.", tools=[look])


def model() -> ScriptedModel:
    return ScriptedModel([call("look"), call("finish", id="W-17", total="much"), call("finish", id="W-17", total=12.5)])


async def main(url: str) -> str:
    """What came of it, as its caller gets it."""
    async with Journeyman(store=crashing(open_store(url)), model=model()) as app:
        await app.resume()
        handle = await app.start(AGENT, "Find W-17", output=Order, run_id=RUN)
        response = await handle.result()
        return f"{response.output!r} {response.plain_output} {response.status} {response.total_iterations}"


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])))
