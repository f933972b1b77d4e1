"""What the status of a run says, and how seldom it changes while the run waits for its turn."""

from __future__ import annotations

from journeyman.core.events import RunQueued
from journeyman.doors.slack.following import Progress


def test_a_run_that_waits_edits_its_status_a_few_times_whatever_the_queue() -> None:
    progress, shown = Progress(), []
    for position in range(1_000, 0, -1):
        progress.hear(RunQueued(position=position))
        shown.append("\n".join(progress.lines()))
    assert "number 1000 in the queue" in shown[0]
    assert "number 1 in the queue" in shown[-1]
    assert len(set(shown)) <= 11
