"""A run with many tools, to be killed anywhere and run again: ``python -m tests.app.many_tools_program STORE``.

It prints what its model was offered when it was asked last.
"""

from __future__ import annotations

import asyncio
import sys

from journeyman import Agent, Journeyman, Policy, tool
from journeyman.stores.store import open_store
from journeyman.testing import ScriptedModel, call, crashing, say

RUN = "run_of_many"


@tool(read_only=True)
def work(what: str = "") -> str:
    """Do it."""
    return "done"


DEEDS, THINGS = (
    ["send", "print", "archive", "share", "book"],
    ["invoice", "parcel", "photo", "song", "recipe", "contract"],
)
TOOLS = [
    work.with_changes(name=f"{deed}_{thing}", description=f"{deed.title()} one {thing}.")
    for deed in DEEDS
    for thing in THINGS
]
AGENT = Agent(name="clerk", instruction="Do what is asked.", tools=TOOLS)
TASK = "Archive the contract"
MOST = 12
POLICY = Policy(max_offered_tools=MOST)


def model() -> ScriptedModel:
    """It finds a tool, calls it and one more, and then one that is not there."""
    turns = [
        call("find_tools", query="book a parcel", k=3),
        call("book_parcel"),
        call("share_song"),
        call("mail_photo"),
    ]
    return ScriptedModel([*turns, say("done")])


def offers(played: ScriptedModel) -> list[list[str]]:
    return [[item.name for item in request.tools] for request in played.requests]


async def main(url: str) -> str:
    played = model()
    async with Journeyman(store=crashing(open_store(url)), model=played, policy=POLICY) as app:
        await app.resume()
        handle = await app.start(AGENT, TASK, run_id=RUN)
        await handle.result()
    return " ".join(offers(played)[-1]) if played.requests else "over"


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1])))
