"""Traces five walks through the code and writes them into docs/architecture.md: the files in which code of ours runs.

``python -m scripts.trace_walks`` writes the page anew, and lower figures into ``scripts/sizes.json``; it fails where a
walk became longer, unless ``--decision PAGE`` names the page in ``docs/decisions`` that says why. ``--check`` writes
nothing and fails where the page is out of date.

Each walk is gone before it is measured, so that what is loaded once does not count, and measured several times: what
does not happen every time belongs to something else, such as a purge in the background.
"""

from __future__ import annotations

import argparse
import asyncio
import dis
import gc
import logging
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import httpx

import journeyman
from journeyman import Agent, Journeyman, TaskInput, run, tool
from journeyman.app.service import open_service
from journeyman.core.protocols import ModelRequest
from journeyman.doors.http import serve
from journeyman.execution.executor import Executor
from journeyman.learning import LearningSettings
from journeyman.testing import ScriptedModel, call, say
from scripts import draw_house, size

BEGIN, END = "<!-- walks: made by scripts/trace_walks.py -->", "<!-- end of walks -->"
PACKAGE = str(Path(journeyman.__file__).parent) + "/"
FAKES = "testing/"  # the model of a walk is scripted
WARM_UPS, TIMES = 3, 4

WALKS = {
    "One call": "What a call passes that a model asked for, from the executor's first stage to the recorded outcome.",
    "One durable run": "From `app.start(...)` to its result: two questions to the model and one call, over SQLite.",
    "How an approval wakes a run": "A run that waits is rows in a store. From `approve(...)` to its result.",
    "A run with advice": "A durable run with two calls that a learned strategy advises, from start to result.",
    # Last, since a service measures what the process does from then on.
    "A chat over HTTP": "From `POST /api/v1/chat` to the last event of its stream, with one call.",
}


@cache
def _beginning(code: CodeType) -> int:
    """Where a function begins: a coroutine that goes on after an `await` is called too, but not entered."""
    return next(
        step.offset for step in dis.get_instructions(code) if step.opname == "RESUME" and not (step.arg or 0) & 3
    )


class Tracer:
    """Notes the files of the package in which a function is entered, by the walk or by a thread that works for it."""

    def __init__(self) -> None:
        self._files: set[str] | None = None
        self._found: list[set[str]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        # Tasks have the value of where they were made. Threads have none: only what they do meanwhile says for whom.
        self._walking: ContextVar[bool | None] = ContextVar("walking", default=None)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code, files = frame.f_code, self._files
        if files is None or event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_name != "<module>" and frame.f_lasti == _beginning(code) and self._walking.get() is not False:
            files.add(code.co_filename.removeprefix(PACKAGE))

    @contextmanager
    def standing(self) -> Iterator[None]:
        """What is begun in here is no part of a walk."""
        self._found.clear()
        asyncio.get_running_loop().set_task_factory(self._task)
        self._walking.set(False)
        sys.setprofile(self)
        threading.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def waiting(self, server: Coroutine[Any, Any, None], ready: asyncio.Future[int]) -> asyncio.Task[None]:
        """Start a server: what others ask of it belongs to the walk, what it does of itself does not."""
        context = copy_context()
        context.run(self._walking.set, True)
        ready.add_done_callback(lambda _: context.run(self._walking.set, False), context=copy_context())
        return asyncio.create_task(server, context=context)

    @asynccontextmanager
    async def measuring(self) -> AsyncIterator[None]:
        """Once along the walk, until all that it began has ended."""
        self._tasks.clear()
        self._files = set()
        before = self._walking.set(True)
        yield
        self._walking.reset(before)
        while working := [task for task in self._tasks if not task.done()]:
            await asyncio.wait(working)
        self._found.append(self._files)
        self._files = None

    def files(self) -> set[str]:
        every_time = set.intersection(*self._found[WARM_UPS:])
        return {file for file in every_time if not file.startswith(FAKES)}

    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        task = asyncio.Task(work, loop=loop, **options)
        if self._files is not None and self._walking.get() is not False:
            self._tasks.append(task)
        return task


@tool(read_only=True)
def find_person(name: str) -> dict[str, str]:
    """Find a person's address by name. Use when a person is named."""
    return {"email": f"{name.lower()}@corp.example"}


@tool(risk="reversible")
def send_note(to: str, text: str) -> str:
    """Send a note to an address. Use when somebody is to be told something."""
    return "sent"


@tool(risk="irreversible")
def delete_order(order_id: str) -> str:
    """Delete an order."""
    return order_id


CLERK = Agent(name="clerk", instruction="Help.", tools=[find_person, delete_order])
OFFICE = Agent(name="office", instruction="Help.", tools=[find_person, send_note])
PEOPLE = ("Anna", "Bert", "Carla", "Dora", "Emil", "Fritz", "Greta")
LOOK_UP = ScriptedModel([call("find_person", name="Anna"), say("anna@corp.example")])
DELETE = ScriptedModel([call("delete_order", order_id="W-17"), say("Done.")])
NOTE = ScriptedModel([call("create_task", title="Buy milk"), say("Noted.")])
TELL = ScriptedModel(
    [
        lambda request: call("find_person", name=_named(request)),
        lambda request: call("send_note", to=f"{_named(request).lower()}@corp.example", text="Lunch is ready"),
        say("Told."),
    ]
)


def _named(request: ModelRequest) -> str:
    """Whom the task is about."""
    return next(name for name in PEOPLE if any(name in message.content for message in request.messages))


async def one_call(tracer: Tracer, folder: Path) -> None:
    execute = Executor.execute

    async def measured(*parts: Any) -> Any:
        async with tracer.measuring():
            return await execute(*parts)

    with mock.patch.object(Executor, "execute", measured):
        for _ in range(WARM_UPS + TIMES):
            await run(CLERK, "What is Anna's address?", model=LOOK_UP)


async def durable_run(tracer: Tracer, folder: Path) -> None:
    async with Journeyman(store=_store(folder), model=LOOK_UP, poll_seconds=600) as app:
        for _ in range(WARM_UPS + TIMES):
            async with tracer.measuring():
                await (await app.start(CLERK, "What is Anna's address?")).result()


async def approval(tracer: Tracer, folder: Path) -> None:
    async with Journeyman(store=_store(folder), model=DELETE, poll_seconds=600) as app:
        for _ in range(WARM_UPS + TIMES):
            handle = await app.start(CLERK, "Delete W-17")
            await handle.wait()
            [asked] = await app.approvals.pending()
            async with tracer.measuring():
                await app.approvals.approve(asked.id, by="grace")
                await handle.result()


async def chat(tracer: Tracer, folder: Path) -> None:
    async with open_service(store=_store(folder), model=NOTE, poll_seconds=600) as service:
        ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = tracer.waiting(serve(service, port=0, ready=ready.set_result), ready)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{await ready}", timeout=None) as client:
            for _ in range(WARM_UPS + TIMES):
                async with (
                    tracer.measuring(),
                    client.stream("POST", "/api/v1/chat", json={"message": "Remind me to buy milk"}) as response,
                ):
                    assert (await response.aread()).rstrip().endswith(b"[DONE]")
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def advised_run(tracer: Tracer, folder: Path) -> None:
    learning = LearningSettings(holdout=0)
    async with Journeyman(store=_store(folder), model=TELL, learning=learning, poll_seconds=600) as app:
        for name in PEOPLE[: WARM_UPS + TIMES]:
            task = TaskInput(description=f"Tell {name} that lunch is ready", domain="office")
            async with tracer.measuring():
                handle = await app.start(OFFICE, task)
                await handle.result()
            await app.playbooks.learn()
        assert "strategies_injected" in {event.type async for event in handle.events()}


def _store(folder: Path) -> str:
    return f"sqlite:///{folder / 'store.db'}"


async def trace() -> dict[str, set[str]]:
    """The files of each walk."""
    found: dict[str, set[str]] = {}
    for name, walk in zip(WALKS, (one_call, durable_run, approval, advised_run, chat), strict=True):
        tracer = Tracer()
        with tempfile.TemporaryDirectory() as folder, tracer.standing():
            await walk(tracer, Path(folder))
        found[name] = tracer.files()
    return found


def section(walks: dict[str, set[str]]) -> str:
    """The walks as tables: a row a room, the rooms from the doors downwards."""
    levels = draw_house.levels(draw_house.imports())
    lines = []
    for name, files in walks.items():
        lines += [f"### {name}", WALKS[name], "", f"| room | the {len(files)} files |", "|---|---|"]
        rooms: dict[str, list[str]] = {}
        for file in sorted(files):
            room, _, rest = file.partition("/")
            rooms.setdefault(room, []).append(f"`{rest.removesuffix('.py')}`")
        for room in sorted(rooms, key=lambda room: (-levels.get(room, 0), room)):
            lines.append(f"| `{room}` | {', '.join(rooms[room])} |")
        lines.append("")
    return "\n".join(lines)


def page(text: str, walks: dict[str, set[str]]) -> str:
    """The page with the walks between its marks made anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{section(walks)}{END}{rest.partition(END)[2]}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Trace the walks of docs/architecture.md.")
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where the page is out of date")
    parser.add_argument("--decision", metavar="PAGE", help="let walks be longer; the page in docs/decisions says why")
    options = parser.parse_args()
    gc.disable()  # what is collected, and when, is no part of a walk
    logging.disable()
    walks = asyncio.run(trace())
    text = draw_house.PAGE.read_text(encoding="utf-8")
    if options.check and page(text, walks) != text:
        print(section(walks))
        print("The walks differ: run 'python -m scripts.trace_walks' to update docs/architecture.md", file=sys.stderr)
        return 1
    if not options.check:
        draw_house.PAGE.write_text(page(text, walks), encoding="utf-8")
    counts = {name: [len(files)] for name, files in walks.items()}
    return size.compare("walks", counts, lower=not options.check, decision=options.decision)


if __name__ == "__main__":
    sys.exit(main())
