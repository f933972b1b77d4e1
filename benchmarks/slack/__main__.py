"""Ten channels with 100 messages each beside one, over Socket Mode and signed requests, beside a bot written by hand.

``python -m benchmarks.slack [--quick] [--only socket|http] [--json]``

The bots are processes of their own with the real slack-bolt; Slack and the model are on the loopback interface. Every
message names what to look at, and its answer must name the same, in its thread and in no other, once. Exit code 1 when
an answer was lost, crossed or doubled, or when a message of ten channels takes more CPU than one of one channel.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.programs import started
from benchmarks.slack.traffic import BusySlack, Figures
from tests.doors.slack.loopback import serving

BOTS = ("floor", "ours")
DELIVERIES = ("socket", "http")


class Case(NamedTuple):
    """One wave of messages."""

    name: str
    channels: int
    each: int
    one_by_one: bool = False


CASES = (
    Case("one by one", 1, 100, one_by_one=True),
    Case("1 × 100", 1, 100),
    Case("1 × 1,000", 1, 1_000),
    Case("10 × 100", 10, 100),
)
QUICK = (Case("1 × 50", 1, 50), Case("10 × 5", 10, 5))
MOST_CPU = 1.3
"""Times what a message of one channel takes, with as many messages; wall time is everybody's on a busy machine."""


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def measure(
    cases: tuple[Case, ...], deliveries: tuple[str, ...], bots: tuple[str, ...] = BOTS
) -> dict[tuple[str, str, str], Figures]:
    """What each bot came to, by delivery, bot and case."""
    found: dict[tuple[str, str, str], Figures] = {}
    slack = BusySlack()
    with tempfile.TemporaryDirectory() as folder:
        async with serving(slack), started("benchmarks.slack.model") as (model, _):
            for delivery in deliveries:
                for bot in bots:
                    store = f"sqlite:///{folder}/{delivery}.db"
                    given = (f"http://127.0.0.1:{model}/v1", slack.url, delivery, store)
                    async with started(f"benchmarks.slack.{bot}", *given) as (port, pid):
                        url = f"http://127.0.0.1:{port}/slack/events" if port else None
                        await slack.wave("warm-up", url, channels=5, each=4)
                        for number, case in enumerate(cases):
                            used = _cpu(pid)
                            figures = await slack.wave(
                                *(f"{delivery}-{bot}-{number}", url),
                                channels=case.channels,
                                each=case.each,
                                one_by_one=case.one_by_one,
                            )
                            figures.cpu = _cpu(pid) - used
                            found[delivery, bot, case.name] = figures
    return found


def row(figures: Figures) -> dict[str, Any]:
    return {
        "messages": figures.messages,
        "messages_per_second": figures.rate,
        "p50_ms": figures.p50 * 1000,
        "p95_ms": figures.p95 * 1000,
        "cpu_ms_per_message": figures.cpu / figures.messages * 1000,
        "slack_calls_per_message": figures.calls.total() / figures.messages,
        "lost": figures.lost,
        "crossed": figures.crossed,
        "doubled": figures.doubled,
    }


def verdicts(found: dict[tuple[str, str, str], Figures], *, quick: bool) -> dict[str, bool]:
    told = {"no answer lost, crossed or doubled": all(item.right for item in found.values())}
    if not quick:
        for delivery in dict.fromkeys(name for name, _, _ in found):
            many, one = (found[delivery, "ours", case] for case in ("10 × 100", "1 × 1,000"))
            target = f"{delivery}: CPU per message of ten channels ≤ {MOST_CPU} × that of one with as many messages"
            told[target] = many.cpu / many.messages <= MOST_CPU * one.cpu / one.messages
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="everything as one document")
    parser.add_argument("--quick", action="store_true", help="less of it: an impression, not a verdict")
    parser.add_argument("--only", choices=DELIVERIES, help="one way of delivery")
    options = parser.parse_args()
    cases = QUICK if options.quick else CASES
    deliveries = (options.only,) if options.only else DELIVERIES
    found = asyncio.run(measure(cases, deliveries))
    told = verdicts(found, quick=options.quick)
    if options.json:
        rows = [{"delivery": d, "bot": b, "case": c, **row(figures)} for (d, b, c), figures in found.items()]
        print(json.dumps({"rows": rows, "verdicts": told}, indent=2))
    else:
        show(found, cases, deliveries)
        for target, passed in told.items():
            print(f"{'ok    ' if passed else 'MISSED'} {target}")
    sys.exit(0 if all(told.values()) else 1)


def show(found: dict[tuple[str, str, str], Figures], cases: tuple[Case, ...], deliveries: tuple[str, ...]) -> None:
    print("                          messages/s   p50 ms   p95 ms  CPU ms/message  Slack calls  lost crossed doubled")
    for delivery in deliveries:
        for case in cases:
            for bot in BOTS:
                item = row(found[delivery, bot, case.name])
                print(
                    f"{delivery:6} {case.name:10} {bot:6} {item['messages_per_second']:11.1f} {item['p50_ms']:8.0f} "
                    f"{item['p95_ms']:8.0f} {item['cpu_ms_per_message']:15.2f} {item['slack_calls_per_message']:12.2f} "
                    f"{item['lost']:5} {item['crossed']:7} {item['doubled']:7}"
                )
            floor, ours = (found[delivery, bot, case.name] for bot in BOTS)
            print(
                f"{delivery:6} {case.name:10} ratio  {ours.rate / floor.rate:11.2f} "
                f"{ours.p50 / floor.p50:8.2f} {ours.p95 / floor.p95:8.2f} {ours.cpu / floor.cpu:15.2f}"
            )


if __name__ == "__main__":
    main()
