"""Many people who mention the bot at once, and what came back to each of them."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from statistics import median, quantiles

import aiohttp

from tests.doors.slack.loopback import Json, LoopbackSlack, signed

STALLED_SECONDS = 60.0
"""So long without any answer, and what is not there is lost."""
QUIET_SECONDS = 1.0
PEOPLE = 50
AT_ONCE = 100
"""Signed requests that are under way at once."""
_ANSWER = re.compile(r"answer to (\S+)")


@dataclass
class Figures:
    """What one wave of messages came to."""

    messages: int
    seconds: float
    taken: list[float]
    calls: Counter[str]
    lost: int
    crossed: int
    doubled: int
    cpu: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.taken) / self.seconds

    @property
    def p50(self) -> float:
        return median(self.taken) if self.taken else float("nan")

    @property
    def p95(self) -> float:
        return quantiles(self.taken, n=20)[-1] if len(self.taken) > 1 else float("nan")

    @property
    def right(self) -> bool:
        return not (self.lost or self.crossed or self.doubled)


@dataclass
class _Wave:
    asked: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """Channel, moment and time of each message, by its name."""
    answered: dict[str, float] = field(default_factory=dict)
    crossed: int = 0
    doubled: int = 0


class BusySlack(LoopbackSlack):
    """A Slack that knows which answer belongs to which message."""

    def __init__(self) -> None:
        super().__init__()
        self._wave = _Wave()
        self._news = asyncio.Event()
        self._people = count()
        self._sending: set[asyncio.Task[None]] = set()

    def chat_postmessage(self, team: str, given: Json) -> Json:
        if (found := _ANSWER.search(given["text"])) is not None:
            name, wave = found[1], self._wave
            channel, ts, _ = wave.asked.get(name, ("", "", 0.0))
            wave.crossed += (given["channel"], given.get("thread_ts")) != (channel, ts)
            wave.doubled += name in wave.answered
            wave.answered.setdefault(name, time.perf_counter())
            self._news.set()
        return super().chat_postmessage(team, given)

    async def wave(self, label: str, url: str | None, *, channels: int, each: int, one_by_one: bool = False) -> Figures:
        """Messages in all channels at once, or each after the answer to the one before; what came of them."""
        self._wave, before = _Wave(), len(self.requests)
        begun = time.perf_counter()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session:
            for number in range(each):
                await asyncio.gather(*(self._ask(session, url, f"{label}-{n}-{number}", n) for n in range(channels)))
                if one_by_one:
                    await self._answers()
            await self._answers()
        wave = self._wave
        ended = max(wave.answered.values(), default=time.perf_counter())
        await self._quiet()
        return Figures(
            messages=len(wave.asked),
            seconds=ended - begun,
            taken=[at - wave.asked[name][2] for name, at in wave.answered.items() if name in wave.asked],
            calls=Counter(method for method, _ in self.requests[before:]),
            **self.wrong(),
        )

    def expect(self, name: str, channel: str, ts: str, asked: float) -> None:
        """Note a message that is to be answered."""
        self._wave.asked[name] = (channel, ts, asked)

    async def settled(self) -> None:
        """Return when everything is answered, or nothing happens any more."""
        await self._answers()
        await self._quiet()

    def wrong(self) -> dict[str, int]:
        """What is wrong with the answers so far."""
        wave = self._wave
        lost = len(wave.asked.keys() - wave.answered.keys())
        return {"lost": lost, "crossed": wave.crossed, "doubled": wave.doubled}

    async def _ask(self, session: aiohttp.ClientSession, url: str | None, name: str, number: int) -> None:
        user = f"U0LOAD{next(self._people) % PEOPLE:04d}"
        payload = self.mention(f"look at {name}", channel=f"C0LOAD{number:04d}", user=user)
        event = payload["event"]
        self.expect(name, event["channel"], event["ts"], time.perf_counter())
        if url is None:
            await self.deliver(payload, wait=False)
            return
        body, headers = signed(payload)
        # As with Slack, whose requests do not wait for each other.
        self._sending.add(task := asyncio.create_task(_post(session, url, body, headers)))
        task.add_done_callback(self._sending.discard)

    async def _answers(self) -> None:
        """Return when every message has its answer, or when none came for long."""
        while len(self._wave.answered) < len(self._wave.asked):
            self._news.clear()
            try:
                async with asyncio.timeout(STALLED_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                return

    async def _quiet(self) -> None:
        """Return when the bot has nothing to say any more."""
        seen = -1
        while seen != len(self.requests):
            seen = len(self.requests)
            await asyncio.sleep(QUIET_SECONDS)


async def _post(session: aiohttp.ClientSession, url: str, body: str, headers: dict[str, str]) -> None:
    async with session.post(url, data=body, headers=headers) as response:
        if response.status != 200:
            raise RuntimeError(f"the bot answered {response.status}: {await response.text()}")
