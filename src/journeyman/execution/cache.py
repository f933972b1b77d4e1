"""Remembers answers of read-only tools that opted in. The key covers tool, version, arguments and principal."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.protocols import Clock

MISS = object()


class ResultCache:
    """Least recently used entries leave first. Values are kept as text, so that nobody can change them afterwards."""

    def __init__(self, *, clock: Clock, entries: int = 1_000) -> None:
        self._clock = clock
        self._entries = entries
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def get(self, key: str) -> Any:
        """The value, or ``MISS``."""
        found = self._kept.get(key)
        if found is None:
            return MISS
        until, data = found
        if self._clock.monotonic() >= until:
            del self._kept[key]
            return MISS
        self._kept.move_to_end(key)
        return from_json(data)

    def put(self, key: str, value: Any, *, seconds: float) -> None:
        self._kept[key] = (self._clock.monotonic() + seconds, to_json(value))
        self._kept.move_to_end(key)
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)
