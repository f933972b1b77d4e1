"""The report of many runs under today's policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Callable

from journeyman.core.errors import JourneymanError
from journeyman.replay.gate import judge
from journeyman.replay.recording import Recording
from journeyman.replay.report import ReplayReport, Share, Tally
from journeyman.replay.stage import Today

CHANGES = ("now_asked", "now_denied", "now_free")


async def replay_policy(
    recordings: AsyncIterable[Recording],
    today: Today,
    *,
    name: str = "Recorded calls under today's policy",
    progress: Callable[[int], None] | None = None,
) -> ReplayReport:
    """Every call of these runs through today's gate. One run is held at a time."""
    counts: Counter[str] = Counter()
    tally, gone, unreadable = Tally(), set[str](), list[str]()
    async for recording in recordings:
        counts["runs"] += 1
        changes: set[str] = set()
        try:
            async for verdict in judge(recording, today):
                counts["calls"] += 1
                counts[verdict.change] += 1
                counts["conditional"] += verdict.conditional
                changes.add(verdict.change)
                if verdict.change != "same":
                    tally.add(
                        verdict.change,
                        verdict.tool_name,
                        verdict.code or verdict.rule,
                        verdict.rule,
                        run_id=verdict.run_id,
                        call_id=verdict.call_id,
                    )
            gone |= today.bind(recording.started.agent).recorded
        except (JourneymanError, ValueError, LookupError) as error:
            unreadable.append(f"{recording.run_id}: {error}")
        counts["changed_runs"] += not changes.isdisjoint(CHANGES)
        if progress is not None:
            progress(counts["runs"])
    return _report(name, counts, tally, gone, unreadable)


def _report(name: str, counts: Counter[str], tally: Tally, gone: set[str], unreadable: list[str]) -> ReplayReport:
    runs, calls = counts["runs"], counts["calls"]
    changed = sum(counts[change] for change in CHANGES)
    notes = []
    if counts["conditional"]:
        notes.append(
            f"{counts['conditional']:,} of {calls:,} calls come after one that is decided otherwise today: the model "
            "might have gone on differently. All others are evidence."
        )
    if counts["unknown"]:
        notes.append(f"{counts['unknown']:,} calls are of tools that neither this program nor the recording describes.")
    if gone:
        notes.append(f"Not here, judged by their recorded specifications: {', '.join(sorted(gone))}.")
    if unreadable:
        notes.append(f"{len(unreadable):,} runs could not be replayed, e.g. {unreadable[0]}")
    if changed:
        details = ", ".join(f"{counts[change]:,} {change.replace('_', ' ')}" for change in CHANGES if counts[change])
        verdict = f"{changed:,} of {calls:,} calls would be decided otherwise: {details}."
    else:
        verdict = f"All {calls:,} calls would be decided as they were."
    kept = ("runs", "calls", "same", *CHANGES, "unknown", "conditional")
    return ReplayReport(
        kind="policy",
        name=name,
        verdict=verdict,
        counts={key: counts[key] for key in kept},
        shares={"runs_that_change": Share.of(counts["changed_runs"], runs)},
        findings=tally.findings(),
        notes=tuple(notes),
    )
