"""Kill -9 at any moment: every message must have one status and one answer in its thread, whatever was under way.

``python -m benchmarks.slack.kills [--kills 12] [--messages 60] [--seed 1]``

As Slack does, a message is sent again until it was acknowledged; each time to a process that is killed within a quarter
of a second, and then to one that is left alone. Exit code 1 when an answer or a status is lost, crossed or doubled.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter

import aiohttp

from benchmarks.programs import started
from benchmarks.slack.traffic import BusySlack
from tests.doors.slack.loopback import Json, serving, signed

AT_ONCE = 8
CHANNELS = 5
LONGEST_LIFE = 0.25


async def send(session: aiohttp.ClientSession, port: int, name: str, pending: dict[str, Json]) -> None:
    body, headers = signed(pending[name])
    try:
        async with session.post(f"http://127.0.0.1:{port}/slack/events", data=body, headers=headers) as response:
            if response.status == 200:
                pending.pop(name, None)
    except aiohttp.ClientError:
        pass  # it was killed


async def measure(kills: int, messages: int, chance: random.Random) -> dict[str, int]:
    """What came of so many messages."""
    slack = BusySlack()
    pending: dict[str, Json] = {}
    for number in range(messages):
        payload = slack.mention(f"look at kill-{number}", channel=f"C0LOAD{number % CHANNELS:04d}")
        event = payload["event"]
        slack.expect(f"kill-{number}", event["channel"], event["ts"], time.perf_counter())
        pending[f"kill-{number}"] = payload
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        async with serving(slack), started("benchmarks.slack.model") as (model, _), aiohttp.ClientSession() as session:
            given = (f"http://127.0.0.1:{model}/v1", slack.url, "http", f"sqlite:///{folder}/kills.db")
            while pending or killed < kills:
                async with started("benchmarks.slack.ours", *given, kill=True) as (port, _):
                    names = chance.sample(sorted(pending), min(len(pending), AT_ONCE))
                    sending = [asyncio.create_task(send(session, port, name, pending)) for name in names]
                    await asyncio.sleep(chance.uniform(0.0, LONGEST_LIFE))
                await asyncio.gather(*sending)
                killed += 1
            async with started("benchmarks.slack.ours", *given):
                await slack.settled()
    statuses = Counter(
        message["thread_ts"]
        for told in slack.messages.values()
        for message in told
        if any(block["block_id"].startswith("status:") for block in message.get("blocks", ()))
    )
    working = sum(len(slack.said(channel, key="cancel:")) for channel in slack.messages)
    return {
        "kills": killed,
        "messages": messages,
        **slack.wrong(),
        "statuses lost": messages - len(statuses),
        "statuses doubled": sum(number > 1 for number in statuses.values()),
        "statuses not ended": working,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = asyncio.run(measure(options.kills, options.messages, random.Random(options.seed)))
    print(", ".join(f"{name} {value}" for name, value in found.items()))
    sys.exit(1 if any(value for name, value in found.items() if name not in ("kills", "messages")) else 0)


if __name__ == "__main__":
    main()
