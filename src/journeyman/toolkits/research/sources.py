"""What was read, by number: each page, file and document that a run has read is one source.

Numbers are given while tools run and are part of their results, so that whoever has the results has the sources. A run
that another process resumes goes on with numbers that none of its earlier results can have.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic_core import from_json

from journeyman.core.calls import CallStatus
from journeyman.core.context import ToolContext
from journeyman.core.messages import Message, Role
from journeyman.core.runs import AgentResponse

MOST_RUNS = 500
"""Whose numbers are remembered."""
_ITERATION = re.compile(r"call_(\d{1,9})_")


@dataclass(frozen=True, slots=True)
class Source:
    """Something that was really read."""

    number: int
    kind: Literal["web", "file", "memory"]
    title: str
    address: str
    """A web address, a path, or a document's id."""
    text: str
    """What was read of it."""
    stored_at: datetime | None = None
    """Of a document in memory."""


@dataclass(slots=True)
class RunSources:
    """The numbers of one run, and what it has spent."""

    before: int = 0
    """No source has this number or a lower one."""
    numbers: dict[str, int] = field(default_factory=dict)
    reads: int = 0

    def number(self, address: str) -> int:
        return self.numbers.setdefault(address, self.before + len(self.numbers) + 1)


class SourceBook:
    """The numbers of the runs of this process. ``shared``: all runs number together, as those of one conversation."""

    def __init__(self, *, shared: bool = False) -> None:
        self._runs: OrderedDict[str, RunSources] = OrderedDict()
        self._shared: dict[str, int] | None = {} if shared else None

    def of(self, context: ToolContext) -> RunSources:
        """Those of the run that a call belongs to."""
        if (kept := self._runs.get(context.run_id)) is None:
            kept = self._runs[context.run_id] = self._begun(context)
        self._runs.move_to_end(context.run_id)
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        return kept

    def _begun(self, context: ToolContext) -> RunSources:
        if self._shared is not None:
            return RunSources(numbers=self._shared)
        found = _ITERATION.match(context.call_id)
        return RunSources(before=100 * (int(found[1]) - 1) if found else 0)


def results_of(response: AgentResponse, history: Iterable[Message] = ()) -> Iterator[Any]:
    """What tools have returned in a conversation, and then in the run that went on with it."""
    for message in history:
        if message.role is Role.FUNCTION:
            try:
                yield from_json(message.content)
            except ValueError:  # an error in words, or a result of which the middle was cut out
                continue
    for record in response.tool_calls:
        if record.status is CallStatus.SUCCESS:
            yield record.result


def sources_of(results: Iterable[Any]) -> dict[int, Source]:
    """What was read, by number, from what tools have returned. Several results about one address are one source."""
    found: dict[int, Source] = {}
    for result in results:
        if not isinstance(result, dict):
            continue
        listed = result.get("results")
        for item in listed if isinstance(listed, list) else [result]:
            source = _source(item) if isinstance(item, dict) else None
            if source is not None:
                earlier = found.get(source.number)
                if earlier is not None and earlier.text not in source.text:
                    source = _joined(earlier, source)
                found[source.number] = source
    return found


def _joined(earlier: Source, later: Source) -> Source:
    return Source(
        later.number,
        later.kind,
        later.title or earlier.title,
        later.address,
        f"{earlier.text}\n\n{later.text}",
        later.stored_at,
    )


def _source(item: Mapping[str, Any]) -> Source | None:
    number, stored = item.get("source"), item.get("stored_at")
    if type(number) is not int:
        return None
    title = str(item.get("title") or "")
    # A title and the day something was stored were read as well.
    read = "\n".join(str(item[name]) for name in ("title", "snippet", "text", "stored_at") if item.get(name))
    for name, kind in _KINDS.items():
        if isinstance(address := item.get(name), str):
            when = datetime.fromisoformat(stored) if isinstance(stored, str) else None
            return Source(number, kind, title, address, read, when)
    return None


_KINDS: dict[str, Literal["web", "file", "memory"]] = {"url": "web", "path": "file", "document_id": "memory"}


def age(stored_at: datetime, now: datetime | None = None) -> str:
    """How old something is, in words.

    >>> age(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC))
    '3 days'
    """
    seconds = max(0.0, ((now or datetime.now(UTC)) - stored_at).total_seconds())
    for unit, size in (("year", 31_557_600), ("month", 2_629_800), ("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"
