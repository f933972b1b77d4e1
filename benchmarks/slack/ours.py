"""Our Slack door with the same tool, everything on: SQLite file, governance, status, buttons."""

from __future__ import annotations

import asyncio
import sys

from journeyman import Agent, RateLimit, ToolLibrary, tool
from journeyman.app.service import open_service, slack_pace
from journeyman.doors.slack import SlackDoor, find_workspaces, over_http, over_socket
from journeyman.toolkits.slack import METHODS
from tests.doors.slack.loopback import APP_TOKEN, SECRET, TEAM, TOKENS


@tool(read_only=True)
async def look(place: str) -> str:
    """Look at a place. Use when somebody wants to know."""
    return f"nothing at {place}"


async def main(model_url: str, slack_url: str, delivery: str, store: str) -> None:
    agent = Agent(name="bench", instruction="Help.", model=f"{model_url}#any", tools=[look])
    async with open_service(store=store, library=ToolLibrary([look]), agents=[agent]) as service:
        # Counted over the store as ever, and never reached: Slack's own limits would be all that is measured.
        pace = slack_pace(service.store, dict.fromkeys(METHODS, RateLimit(calls=1_000_000)))
        workspaces = await find_workspaces({TEAM: TOKENS[TEAM]}, base_url=slack_url, pace=pace)
        door = SlackDoor(service, workspaces, base_url=slack_url, signing_secret=SECRET)
        if delivery == "socket":
            async with over_socket(door, APP_TOKEN):
                print(0, flush=True)
                await asyncio.to_thread(sys.stdin.read)
        else:
            async with over_http(door, host="127.0.0.1", port=0) as port:
                print(port, flush=True)
                await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
