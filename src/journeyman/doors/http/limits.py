"""How much one client may ask for: the size of a body, and requests a minute."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from starlette.types import Message, Receive

from journeyman.doors.http.errors import Problem

MOST_CLIENTS = 10_000


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """What the door allows."""

    body_bytes: int = 1_000_000
    requests_per_minute: int = 1_200
    """Of one principal, or of one address that shows no valid token. As many may come at once."""


class Meter:
    """Token buckets by client; the clients that were not heard of for longest are forgotten."""

    def __init__(self, limits: DoorLimits) -> None:
        self._most = float(limits.requests_per_minute)
        self._per_second = self._most / 60
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, *, now: float) -> float:
        """Count one request: 0, or the seconds until another is allowed."""
        left, then = self._buckets.pop(client, (self._most, now))
        left = min(self._most, left + (now - then) * self._per_second)
        wait = 0.0 if left >= 1 else (1 - left) / self._per_second
        self._buckets[client] = (left - 1 if wait == 0 else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return wait


def too_large(limit: int) -> Problem:
    return Problem(
        413, "BODY_TOO_LARGE", f"the body has more than {limit:,} bytes", recover_action="Send less at a time"
    )


def measured(receive: Receive, limit: int) -> Receive:
    """The same body, refused at the first byte too many."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > limit:
                raise too_large(limit)
        return message

    return counted
