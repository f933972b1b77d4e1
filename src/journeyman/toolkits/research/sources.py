"""What was read, by number: each page, file and document that a run has read is one source.

Numbers are given while tools run and are part of their results, so that whoever has the results has the sources. A run
that another process resumes goes on with numbers that none of its earlier results can have. Tools of others, a server's
too, number nothing: ``numbered`` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import wraps
from inspect import isasyncgen
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json, to_json, to_jsonable_python

from journeyman.core.calls import CallStatus, ToolContext
from journeyman.core.data import Latest, digest
from journeyman.core.runs import AgentResponse, Message, Role
from journeyman.tools.tool import Tool, collected

SourceKind: TypeAlias = Literal["web", "file", "memory", "tool"]
MOST_RUNS = 500
"""Whose numbers are remembered."""
_ITERATION = re.compile(r"call_(\d{1,9})_")


@dataclass(frozen=True, slots=True)
class Source:
    """Something that was really read."""

    number: int
    kind: SourceKind
    title: str
    address: str
    """A web address, a path, a document's id, or the name of the tool that said it."""
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
        self._runs: Latest[str, RunSources] = Latest(MOST_RUNS)
        self._shared: dict[str, int] | None = {} if shared else None

    @property
    def shared(self) -> RunSources:
        """Those of all runs, where they number together."""
        return RunSources(numbers={} if self._shared is None else self._shared)

    def of(self, context: ToolContext) -> RunSources:
        """Those of the run that a call belongs to."""
        if (kept := self._runs.get(context.run_id)) is None:
            match = _ITERATION.match(context.call_id) if self._shared is None else None
            before = 100 * (int(match[1]) - 1) if match else 0
            kept = RunSources(before, {} if self._shared is None else self._shared)
        self._runs[context.run_id] = kept  # the latest last
        return kept


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
    sources: dict[int, Source] = {}
    for result in results:
        for item in _items(result):
            source = _source(item)
            if source is not None:
                earlier = sources.get(source.number)
                if earlier is not None and earlier.text not in source.text:
                    title, text = source.title or earlier.title, f"{earlier.text}\n\n{source.text}"
                    source = replace(source, title=title, text=text)
                sources[source.number] = source
    return sources


def _items(result: Any) -> list[dict[str, Any]]:
    """What a result may hold of sources: itself, or what it lists."""
    if isinstance(result, dict) and type(result.get("source")) is not int:
        result = [item for listed in result.values() if isinstance(listed, list) for item in listed]
    return [item for item in (result if isinstance(result, list) else [result]) if isinstance(item, dict)]


def numbered(item: Tool[..., Any], sources: RunSources) -> Tool[..., Any]:
    """The same tool, whose results say the number of each source in them, so that a model can cite it.

    What names an address is a source; a result without any is one as a whole. A tool that runs in a process of its own
    stays as it is: this one's numbers are not there.
    """
    if item.isolation == "process":
        return item
    function = item.function

    def finished(value: Any) -> Any:
        return _with_numbers(value, item.name, sources)

    @wraps(function)
    async def call_later(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return finished(await collected(made) if isasyncgen(made) else await made)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return finished(function(*args, **kwargs))

    return replace(item, function=call_later if item.is_async else call, render=None)


def _with_numbers(value: Any, tool: str, sources: RunSources) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):  # it may only look like JSON
            value = from_json(value)
    plain = to_jsonable_python(value, fallback=str)
    if isinstance(plain, dict) and _address(plain) is None:
        lists = {name: _listed(held, sources) for name, held in plain.items() if isinstance(held, list)}
        if any(held is not None for held in lists.values()):
            return {**plain, **{name: held for name, held in lists.items() if held is not None}}
    elif isinstance(plain, list) and (listed := _listed(plain, sources)) is not None:
        return listed
    if isinstance(plain, dict) and (type(plain.get("source")) is int or not plain):
        return value
    if isinstance(plain, dict) and (address := _address(plain)) is not None:
        return {**plain, "source": sources.number(address)}
    text = plain if isinstance(plain, str) else to_json(plain).decode()
    number = sources.number(f"{tool} {digest(text)}")
    return {"source": number, "tool": tool, **(plain if isinstance(plain, dict) else {"text": text})}


def _listed(items: list[Any], sources: RunSources) -> list[Any] | None:
    """A list with numbers in it; None where it names no address."""
    addresses = [_address(item) if isinstance(item, dict) else None for item in items]
    if not any(addresses):
        return None
    pairs = zip(items, addresses, strict=True)
    return [item if address is None else {**item, "source": sources.number(address)} for item, address in pairs]


def _address(item: Mapping[str, Any]) -> str | None:
    return next((item[name] for name in _KINDS if name != "tool" and isinstance(item.get(name), str)), None)


def _source(item: Mapping[str, Any]) -> Source | None:
    number, stored = item.get("source"), item.get("stored_at")
    if type(number) is not int:
        return None
    title = str(item.get("title") or "")
    # A title and the day something was stored were read as well.
    read = "\n".join(str(item[name]) for name in ("title", "snippet", "text", "stored_at") if item.get(name))
    if not item.get("snippet") and not item.get("text"):  # of a tool that has other names for what it found
        read = to_json({name: value for name, value in item.items() if name != "source"}).decode()
    for name, kind in _KINDS.items():
        if isinstance(address := item.get(name), str):
            when = datetime.fromisoformat(stored) if isinstance(stored, str) else None
            return Source(number, kind, title, address, read, when)
    return None


_KINDS: dict[str, SourceKind] = {
    **dict.fromkeys(("url", "link", "uri", "href"), "web"),
    "path": "file",
    "document_id": "memory",
    "tool": "tool",
}


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
