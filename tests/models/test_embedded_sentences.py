"""Every sentence that we print for people to say, said to the real engine: the right tool runs, and runs well.

So do others that nobody prints, with the arguments that they ask for; the engine's today is a Monday. The printed ones
are collected from the files in which they stand, so a new one is found by itself; it fails here until somebody has said
below what it should do.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from examples import shop
from journeyman import Agent, Approve, Journeyman, Limits, Principal, Tool, ToolLibrary, run
from journeyman.app.service import INSTRUCTION, starters, task_library, task_service
from journeyman.app.service import assistant as assistant_over
from journeyman.core.approvals import Approval
from journeyman.core.calls import CallStatus
from journeyman.core.runs import AgentResponse
from journeyman.doors.cli.demo import tour
from journeyman.models.embedded import EmbeddedModel
from journeyman.models.embedded.files import supported
from journeyman.stores.store import open_store
from journeyman.testing import FakeClock
from journeyman.toolkits.hello import say_hello

MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC).timestamp()
ROOT = Path(__file__).resolve().parents[2]
SAID = tuple(
    re.compile(pattern)
    for pattern in (
        r"""journeyman (?:run|chat) (?:-[^\s"']+ )*["']([^"'\n]+)["']""",
        r"""(?:run_sync|\brun|\.run|\.send|\.stream)\(\s*\w+,\s*"([^"\n]+)\"""",
        r""""message":\s*"([^"\n]+)\"""",
        r""""role":\s*"user",\s*"content":\s*"([^"\n]+)\"""",
        r"""\bmessage: str = Field\(min_length=1[^\n]*examples=\["([^"\n]+)"\]""",
        r"""Write `([^`\n]+)`""",
    )
)
"""How a sentence stands in a command, a program, a request over HTTP, its documentation, and a text."""
PLACES = ("README.md", "docs/*.md", "examples/*", "src/journeyman/doors/**/*.py", "web/src/**/*.ts*")


class Expected(NamedTuple):
    """Who is asked, and the tools that run for it; none where the answer is just said."""

    who: str
    tools: tuple[str, ...]
    arguments: dict[str, Any] | None = None
    """Of the only call, without those that say nothing; None where they are not looked at."""


def said_to(who: str, *tools: str, **arguments: Any) -> Expected:
    return Expected(who, tools, arguments or None)


def todo(title: str, eta: str | None = None, **more: Any) -> Expected:
    return said_to("assistant", "create_task", title=title, **({"eta": eta} if eta else {}), **more)


def listed(**filters: Any) -> Expected:
    return said_to("assistant", "query_tasks", **filters)


def changed(**changes: Any) -> Expected:
    return said_to("assistant", "update_task", task_id="dentist", **changes)


PRINTED = {
    # the built-in assistant
    "Add a task to buy milk": todo("buy milk"),
    "Add a task to call Ada": todo("call Ada"),
    "Add a task to water the plants": todo("water the plants"),
    "Remind me to buy milk": todo("buy milk"),
    "List my tasks": said_to("assistant", "query_tasks"),
    "What is due this week?": listed(due_after="2026-11-16", due_before="2026-11-22"),
    "Remind me to water the plants on Friday": todo("water the plants", "2026-11-20"),
    "Which tasks are the most important ones?": said_to("assistant", "query_tasks"),
    "What can you do for me?": said_to("assistant"),
    "Which tools do you have, and when do you use them?": said_to("assistant"),
    # the demo
    "Create a task to prepare the quarterly report with high priority": todo(
        "prepare the quarterly report", priority="high"
    ),
    "Create a task to archive the old newsletter": said_to("assistant", "create_task"),
    "Which tasks have high priority?": listed(priority="high"),
    "Change the priority of the quarterly report to critical": said_to("assistant", "update_task"),
    "Delete the newsletter task": said_to("assistant", "delete_task"),
    "Create a task to water the plants": said_to("assistant", "create_task"),
    "Book me a flight to Paris": said_to("assistant"),
    # the shop of the examples and the tutorials
    "Where is W-17?": said_to("shop", "lookup_order"),
    "Where is order W-17?": said_to("shop", "lookup_order"),
    "Where is order W-18?": said_to("shop", "lookup_order"),
    "Where are W-17 and W-404?": said_to("shop", "lookup_order", "lookup_order"),
    "Cancel W-17": said_to("shop", "cancel_order"),
    "Cancel W-18": said_to("shop", "cancel_order"),
    "Cancel order W-17": said_to("shop", "cancel_order"),
    "Cancel order W-18": said_to("shop", "cancel_order"),
    "Cancel W-17 and W-18.": said_to("shop", "cancel_order", "cancel_order"),
    # other agents, with the tools beside them
    "Hi, I am Ada.": said_to("greeter", "sayHello"),
    "Greet Ada": said_to("first", "greet_person"),
    "What is 2 + 3?": said_to("sums", "add"),
    "Reserve a lamp": said_to("stock", "reserve"),
    "Who is pet 1?": said_to("scripted"),
    "no such pet": said_to("scripted"),
    "6 times 7?": said_to("scripted"),
    "How late is it in Lima?": said_to("scripted"),
    "Delete W-17": said_to("scripted"),
    "Delete W-17 again": said_to("scripted"),
    "W-17 weighs about 2 kg": said_to("scripted"),
    "Which parcels are there?": said_to("scripted"),
    "My name is Ada.": said_to("scripted"),
    "What is my name?": said_to("scripted"),
    "Cancel Ada's order": said_to("scripted"),
    "Cancel the order of Anna, please": said_to("scripted"),
    "Tell Dora that lunch is ready": said_to("scripted"),
    "Retrieve my stock portfolio performance for Q3 2024": said_to("scripted"),
    "Thanks!": said_to("scripted"),
    "How much is on A-1?": said_to("scripted"),
    "What is on it?": said_to("scripted"),
}
"""``scripted``: the program around it shows something else, with a scripted model or data instead of tools."""

UNPRINTED = {
    "Hello": said_to("assistant"),
    "My name is Ada": said_to("assistant"),
    "Goodbye": said_to("assistant"),
    "Show me my open tasks": said_to("assistant", "query_tasks"),
    "Add a task for the tax return": said_to("assistant", "create_task"),
    "Mark the dentist task as done": changed(status="completed"),
    "Remind me to buy milk tomorrow": todo("buy milk", "2026-11-17"),
    "Remind me to call the doctor next Monday": todo("call the doctor", "2026-11-23"),
    "What is due today?": listed(due_after="2026-11-16", due_before="2026-11-16"),
    "Which tasks are due before Friday?": listed(due_before="2026-11-20"),
    "Show me overdue tasks with high priority": listed(overdue=True, priority="high"),
    "I have finished the dentist task": changed(status="completed"),
    "Attach https://github.com/python/cpython/pull/1 to the dentist task": said_to(
        "assistant", "add_attachment", task_id="dentist", reference="https://github.com/python/cpython/pull/1"
    ),
    "Delete nothing": said_to("assistant"),
    "Delete everything except the dentist task": said_to("assistant"),
    "Change the title of the dentist task to Doctor": changed(title="Doctor"),
    "mark my task as done": said_to("one task", "update_task"),
    "Hello!": said_to("greeter"),
}
"""What people say first, printed or not."""

engine = [
    pytest.mark.slow,
    pytest.mark.usefixtures("embedded_engine"),
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not supported(), reason="the engine is built for Linux x86-64"),
]


def collected() -> Iterator[tuple[str, str]]:
    """Every sentence with where it stands."""
    for place in PLACES:
        for path in sorted(ROOT.glob(place)):
            if path.is_file():
                text = path.read_text(encoding="utf-8")
                yield from ((match[1], path.name) for pattern in SAID for match in pattern.finditer(text))
    for scene in (*tour().WORK, tour().MISSING, tour().CRASH):
        yield from ((sentence, scene.title) for sentence, _ in scene.says)
    for agent in (assistant_over(ToolLibrary(), told=INSTRUCTION), shop.agent):
        yield from ((sentence, "the page's ways to begin") for sentence in starters(agent))


def test_of_every_printed_sentence_it_is_said_what_it_should_do() -> None:
    found = {sentence: place for sentence, place in collected() if sentence != "…"}
    assert {sentence: place for sentence, place in found.items() if sentence not in PRINTED} == {}


def add(a: int, b: int) -> int:
    """Add two numbers. Use when the user asks for a sum."""
    return a + b


def reserve(item: str) -> str:
    """Reserve an item. Use when the user wants one."""
    return f"{item} is reserved"


def first_tool() -> Tool[..., str]:
    """As ``journeyman init`` writes it."""
    written: dict[str, Any] = {}
    text = (files("journeyman.doors.cli") / "templates" / "my_tools.py.txt").read_text(encoding="utf-8")
    exec(text, written)
    return cast("Tool[..., str]", written["greet_person"])


async def approve(approval: Approval) -> Approve:
    return Approve(by="the test")


async def said(agent: Agent, sentence: str, library: ToolLibrary) -> AgentResponse:
    return await run(
        agent,
        sentence,
        library=library,
        model=EmbeddedModel(timeout=1000, clock=FakeClock(MONDAY)),
        approver=approve,
        principal=Principal("ada", permissions={"*"}),
        limits=Limits(iterations=1),
    )


SAYS_NOTHING = {"priority": (None, "medium"), "sort": ("eta_asc",), "limit": (50,), "format": ("standard",)}
"""Defaults."""
NOTHING = (None, False)


def plainly(name: str, value: Any) -> Any:
    """A title in any case, a task with or without the word."""
    if name == "task_id":
        return value.casefold().removeprefix("the ").removesuffix(" task")
    return value.casefold() if name == "title" else value


def check(sentence: str, expected: Expected, response: AgentResponse) -> str | None:
    """What went wrong, if anything did."""
    ran = tuple(record.tool_name for record in response.tool_calls)
    if ran != expected.tools:
        return f"{sentence!r} ran {ran}, not {expected.tools}: {response.answer}"
    if expected.arguments is not None:
        [record] = response.tool_calls
        said = {name: value for name, value in record.arguments.items() if value not in SAYS_NOTHING.get(name, NOTHING)}
        given = {name: plainly(name, value) for name, value in said.items()}
        wanted = {name: plainly(name, value) for name, value in expected.arguments.items()}
        if given != wanted:
            return f"{sentence!r} ran {ran} with {given}, not {wanted}"
    failed = [record for record in response.tool_calls if record.status is not CallStatus.SUCCESS]
    known = "W-404" in sentence  # the tutorial shows what happens to an order that is not there
    return f"{sentence!r}: {failed}" if failed and not known else None


def sentences(who: str) -> dict[str, Expected]:
    """Those with the same arguments one after another: the engine then reads their form once."""
    found = [item for item in {**PRINTED, **UNPRINTED}.items() if item[1].who == who]
    return dict(sorted(found, key=lambda item: (item[1].tools, sorted(item[1].arguments or ()))))


@pytest.fixture
async def assistant(tmp_path: Path) -> AsyncIterator[tuple[Agent, ToolLibrary]]:
    """The built-in one over a store with a task; others come from the sentences."""
    store = open_store(f"sqlite:///{tmp_path / 'tasks.db'}")
    tasks = task_service(store)
    library = task_library(store, tasks=tasks)
    async with Journeyman(library=library, store=store):
        await tasks.create("Go to the dentist")
        yield assistant_over(library), library


class TestOnTheEngine:
    pytestmark = engine

    async def test_what_is_said_to_the_assistant(self, assistant: tuple[Agent, ToolLibrary]) -> None:
        agent, library = assistant
        wrong = [
            check(text, expected, await said(agent, text, library)) for text, expected in sentences("assistant").items()
        ]
        assert [one for one in wrong if one] == []

    async def test_what_is_said_about_the_only_task(self, assistant: tuple[Agent, ToolLibrary]) -> None:
        agent, library = assistant
        for text, expected in sentences("one task").items():
            assert check(text, expected, await said(agent, text, library)) is None

    async def test_what_is_said_to_the_shop(self) -> None:
        wrong = [
            check(text, expected, await said(shop.agent, text, shop.library))
            for text, expected in sentences("shop").items()
        ]
        assert [one for one in wrong if one] == []

    @pytest.mark.parametrize(
        "agent",
        [
            Agent.from_gram(ROOT / "examples" / "hello_world_agent.gram").model_copy(update={"name": "greeter"}),
            Agent(name="first", instruction="Use your tools.", tools=[first_tool()]),
            Agent(name="sums", instruction="Add numbers.", tools=[add]),
            Agent(name="stock", instruction="Help with stock.", tools=[reserve]),
        ],
        ids=lambda agent: agent.name,
    )
    async def test_what_is_said_to_small_agents(self, agent: Agent) -> None:
        library = ToolLibrary([say_hello, add, reserve, first_tool()])
        for text, expected in sentences(agent.name).items():
            assert check(text, expected, await said(agent, text, library)) is None
