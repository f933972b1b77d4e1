"""Ten busy channels: every answer in its thread, once; and that the benchmark would see one that is not."""

from __future__ import annotations

import pytest

from benchmarks.slack.__main__ import DELIVERIES, Case, measure, row, verdicts
from benchmarks.slack.traffic import BusySlack
from tests.doors.slack.loopback import TEAM


def test_answers_that_are_lost_crossed_or_doubled_are_counted() -> None:
    slack = BusySlack()
    for number, name in enumerate("abcd"):
        slack.expect(name, "C0LOAD0001", f"{number}.1", 0.0)

    def answer(name: str, thread: str, channel: str = "C0LOAD0001") -> None:
        given = {"channel": channel, "thread_ts": thread, "text": f"answer to {name}"}
        slack.chat_postmessage(TEAM, given)

    answer("a", "0.1")
    assert slack.wrong() == {"lost": 3, "crossed": 0, "doubled": 0}
    answer("a", "0.1")
    assert slack.wrong() == {"lost": 3, "crossed": 0, "doubled": 1}
    answer("b", "0.1")
    answer("c", "2.1", channel="C0LOAD0002")
    assert slack.wrong() == {"lost": 1, "crossed": 2, "doubled": 1}


@pytest.mark.slow
async def test_ten_channels_at_once_lose_and_cross_nothing_over_both_deliveries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.slack.traffic.QUIET_SECONDS", 0.1)
    found = await measure((Case("10 × 6", 10, 6),), DELIVERIES, ("ours",))
    assert all(verdicts(found, quick=True).values()), [row(item) for item in found.values()]
    assert [item.messages for item in found.values()] == [60, 60]
