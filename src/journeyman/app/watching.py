"""Who waits for news of which run in this process, and what they are told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from journeyman.core.events import Event, RunFailed, RunFinished
from journeyman.core.runs import AgentResponse


class Watch:
    """For whoever looks at one run: when to look again, and what the run amounts to once it has ended here."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self.response: AgentResponse | None = None
        """Set when the run ends while it is watched. The store knows of the end by then."""

    def tell(self) -> None:
        self._news.set()

    def clear(self) -> None:
        self._news.clear()

    async def wait(self, seconds: float) -> None:
        """Until there is news, but no longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()


class Watches:
    """All of them, by run."""

    def __init__(self) -> None:
        self._by_run: dict[str, list[Watch]] = {}

    @contextlib.contextmanager
    def on(self, run_id: str) -> Iterator[Watch]:
        watch = Watch()
        watching = self._by_run.setdefault(run_id, [])
        watching.append(watch)
        try:
            yield watch
        finally:
            watching.remove(watch)
            if not watching:
                self._by_run.pop(run_id, None)

    def watched(self, run_id: str) -> bool:
        return run_id in self._by_run

    def hear(self, event: Event) -> None:
        """A fact about a run that is worked on here."""
        watching = self._by_run.get(event.run_id, ())
        for watch in watching:
            if isinstance(event, RunFinished | RunFailed):
                watch.response = event.response
            watch.tell()

    def tell(self, run_id: str) -> None:
        """Something else happened to a run."""
        for watch in self._by_run.get(run_id, ()):
            watch.tell()
