"""The tasks toolkit under governance: what a model is shown, told and allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Approval, Approve, Deny, Policy, ToolContext, ToolLibrary, run
from journeyman.app.journeyman import Journeyman
from journeyman.stores.store import SqlStore, open_store
from journeyman.testing import FakeClock, ScriptedModel, call, say
from journeyman.toolkits.hello import say_hello
from journeyman.toolkits.tasks import TaskService, task_tools
from tests.playing import Played, agent_with, play

READS = {"list_task_versions", "query_tasks", "search_tasks", "list_attachments"}
DELETES = {"delete_task", "delete_attachment"}


@pytest.fixture
def library(store: SqlStore, clock: FakeClock) -> ToolLibrary:
    return ToolLibrary(task_tools(TaskService(store.tasks, clock)))


async def played(library: ToolLibrary, *turns: Any, **options: Any) -> Played:
    return await play(list(library), [*turns, say("Done.")], library=library, **options)


async def called(library: ToolLibrary, name: str, **arguments: Any) -> dict[str, Any]:
    """What a model is told about one call."""
    told: dict[str, Any] = json.loads((await played(library, call(name, **arguments))).told[0])
    return told


# --- what a model is shown


def test_the_toolkit_is_described_without_a_finding(library: ToolLibrary) -> None:
    assert library.lint() == []
    for tool in library:
        assert "Returns" in tool.specification.description
        assert tool.specification.examples
        for example in tool.specification.examples:
            if not isinstance(example, str):  # the words in which people ask for it
                tool.freeze(json.dumps(example))


def test_risks_are_as_promised(library: ToolLibrary) -> None:
    assert set(library.names()) == READS | DELETES | {"create_task", "update_task", "restore_task", "add_attachment"}
    for tool in library:
        assert tool.specification.read_only is (tool.name in READS)
        assert tool.specification.risk == ("irreversible" if tool.name in DELETES else "reversible")


def test_a_model_sees_the_choices(library: ToolLibrary) -> None:
    properties = library["query_tasks"].specification.parameters["properties"]
    assert properties["priority"]["enum"] == ["low", "medium", "high", "critical"]
    assert properties["status"]["enum"] == ["pending", "in_progress", "completed"]
    assert properties["sort"]["enum"] == ["created_desc", "eta_asc", "priority_desc"]
    assert properties["format"]["enum"] == ["concise", "standard", "detailed"]


# --- what it is told


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("create_task", {"title": ""}, "INVALID_TITLE"),
        ("create_task", {"title": "x" * 256}, "INVALID_TITLE"),
        ("create_task", {"title": "Buy milk", "priority": "urgent"}, "INVALID_PRIORITY"),
        ("create_task", {"title": "Buy milk", "eta": "tomorrow"}, "INVALID_ETA"),
        ("create_task", {"title": "Buy milk", "tags": [""]}, "INVALID_TAGS"),
        ("create_task", {"title": 7}, "INVALID_ARGUMENTS"),
        ("query_tasks", {"status": "lost"}, "INVALID_STATUS"),
        ("query_tasks", {"sort": "random"}, "INVALID_SORT"),
        ("query_tasks", {"due_after": "soon"}, "INVALID_ETA"),
        ("query_tasks", {"limit": 0}, "INVALID_ARGUMENTS"),
        ("update_task", {"task_id": "report", "status": "completed"}, "AMBIGUOUS_TASK"),
        ("update_task", {"task_id": "piano", "status": "completed"}, "TASK_NOT_FOUND"),
        ("update_task", {"task_id": "Anna"}, "NOTHING_TO_CHANGE"),
        ("update_task", {"task_id": "Anna", "priority": "urgent"}, "INVALID_PRIORITY"),
        ("list_attachments", {"task_id": "report"}, "AMBIGUOUS_TASK"),
        ("add_attachment", {"task_id": "piano", "reference": "https://example.com"}, "TASK_NOT_FOUND"),
        ("add_attachment", {"task_id": "Anna", "reference": "no address"}, "INVALID_REFERENCE"),
        ("add_attachment", {"task_id": "Bob", "reference": "HTTPS://example.com/a/"}, "ATTACHMENT_EXISTS"),
    ],
)
async def test_every_error_reaches_the_model_with_a_way_out(
    library: ToolLibrary, store: SqlStore, name: str, arguments: dict[str, Any], code: str
) -> None:
    service = TaskService(store.tasks)
    await service.create("Report for Anna")
    await service.create("Report for Bob", description="https://example.com/a")
    told = await called(library, name, **arguments)
    assert (told["status"], told["code"]) == ("error", code)
    assert told["recover_action"]
    assert (await service.query()).total == 2


async def test_the_candidates_reach_the_model_which_can_then_say_which(library: ToolLibrary, store: SqlStore) -> None:
    service = TaskService(store.tasks)
    for title in ("Report for Anna", "Report for Bob"):
        await service.create(title)
    bob = await service.named("Bob")
    run = await played(
        library,
        call("update_task", task_id="report", status="done"),
        call("update_task", task_id=bob.id, status="done"),
    )
    refusal, success = map(json.loads, run.told)
    assert refusal["code"] == "AMBIGUOUS_TASK"
    assert all(f"'Report for {name}' (pending)" in refusal["recover_action"] for name in ("Anna", "Bob"))
    assert (success["id"], success["status"], success["previous"]) == (bob.id, "completed", {"status": "pending"})


async def test_formats_show_more_and_more(library: ToolLibrary, store: SqlStore) -> None:
    await TaskService(store.tasks).create(
        "Buy milk", description="See https://example.com/a", eta="2027-01-31", tags=["home"]
    )
    shown = {}
    for chosen in ("concise", "standard", "detailed"):
        [shown[chosen]] = (await called(library, "query_tasks", format=chosen))["tasks"]
    assert set(shown["concise"]) == {"id", "status"}
    assert set(shown["standard"]) == {"id", "title", "status", "priority", "eta", "tags", "created_at"}
    assert shown["standard"]["eta"] == "2027-01-31T00:00:00Z"
    assert shown["detailed"]["description"] == "See https://example.com/a"
    assert shown["detailed"]["attachments"][0]["reference"] == "https://example.com/a"
    assert shown["standard"].items() <= shown["detailed"].items()


async def test_other_names_for_arguments_are_understood(library: ToolLibrary) -> None:
    made = await called(library, "create_task", title="Buy milk", eta="2027-01-31", priority="high")
    assert made["task_id"] == made["id"]
    await called(library, "create_task", title="Paint", eta="2027-03-01")
    filters: dict[str, Any] = {"priority": "high", "date_range": {"start": "2027-01-01", "end": "2027-01-31"}}
    told = await called(library, "query_tasks", filters=filters, limit=5)
    assert [task["title"] for task in told["tasks"]] == ["Buy milk"]
    assert [task["title"] for task in (await called(library, "query_tasks", filters=None))["tasks"]] == [
        "Buy milk",
        "Paint",
    ]
    assert "INVALID" in (await called(library, "query_tasks", filters={"colour": "red"}))["code"]
    attached = await called(library, "add_attachment", task_id=made["task_id"], url="https://example.com/a")
    assert attached["reference"] == "https://example.com/a"


async def test_a_query_sorts_limits_counts_and_repeats_its_filters(library: ToolLibrary, store: SqlStore) -> None:
    service = TaskService(store.tasks)
    await service.create("a", priority="low", eta="2027-01-01")
    await service.create("b", priority="critical", eta="2027-01-03")
    await service.create("c", priority="critical", eta="2027-01-02")
    await service.create("d", status="completed")
    for sort, expected in (("eta_asc", "ac"), ("priority_desc", "cb")):
        told = await called(library, "query_tasks", status="pending", sort=sort, limit=2, tags=None)
        assert "".join(task["title"] for task in told["tasks"]) == expected
        assert (told["total"], told["filters"]) == (3, {"status": "pending"})


async def test_a_day_with_all_tools(library: ToolLibrary) -> None:
    task = await called(library, "create_task", title="Fix https://github.com/acme/rocket/issues/7", tags=["bugs"])
    added = await called(library, "add_attachment", task_id="fix", reference="example.com/log?utm_source=x")
    assert (added["type"], added["reference"], added["task_id"]) == ("url", "https://example.com/log", task["id"])
    listed = await called(library, "list_attachments", task_id=task["id"])
    assert [item["type"] for item in listed["attachments"]] == ["github", "url"]
    changed = await called(
        library, "update_task", task_id="fix", title="Mend the rocket", eta="2027-01-31T10:00:00+02:00"
    )
    assert (changed["eta"], changed["previous"]["eta"]) == ("2027-01-31T10:00:00+02:00", None)
    [found] = (await called(library, "search_tasks", query="rockets", format="concise"))["tasks"]
    assert (found["id"], found["score"] > 0) == (task["id"], True)


# --- what it may do


async def test_creating_and_changing_ask_nobody_and_deleting_asks(library: ToolLibrary, store: SqlStore) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def approver(approval: Approval) -> Approve:
        asked.append((approval.tool_name, approval.arguments))
        return Approve()

    run = await played(
        library,
        call("create_task", title="Buy milk https://example.com/a"),
        call("update_task", task_id="milk", status="completed"),
        call("add_attachment", task_id="milk", reference="https://example.com/b"),
        call("query_tasks"),
        call("delete_attachment", attachment_id="https://example.com/a", task_id="milk"),
        call("delete_task", task_id="milk"),
        approver=approver,
    )
    assert [record.status for record in run.response.tool_calls] == ["success"] * 6
    assert asked == [
        ("delete_attachment", {"attachment_id": "https://example.com/a", "task_id": "milk"}),
        ("delete_task", {"task_id": "milk"}),
    ]
    assert (await store.tasks.find()).total == 0


async def test_a_delete_that_is_denied_or_that_nobody_approves_deletes_nothing(
    library: ToolLibrary, store: SqlStore
) -> None:
    await TaskService(store.tasks).create("Buy milk")

    async def approver(approval: Approval) -> Deny:
        return Deny(reason="still needed")

    for options in ({"approver": approver}, {}):
        told = json.loads((await played(library, call("delete_task", task_id="milk"), **options)).told[0])
        assert told["status"] == "denied"
    assert (await store.tasks.find()).total == 1


async def test_a_call_that_is_made_again_after_a_crash_makes_one_task(library: ToolLibrary, store: SqlStore) -> None:
    context = ToolContext(idempotency_key="exec-1")
    made = [await library["create_task"](title="Buy milk", context=context) for _ in range(2)]
    attached = [
        await library["add_attachment"](task_id="milk", reference="https://example.com", context=context)
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert attached[0] == attached[1]
    assert (await store.tasks.find()).total == 1


async def test_an_agent_needs_no_default_risk_for_the_toolkit(library: ToolLibrary) -> None:
    played_strictly = await played(
        library, call("create_task", title="Buy milk"), policy=Policy(default_risk="irreversible")
    )
    assert played_strictly.response.tool_calls[0].success


async def test_tasks_and_runs_share_one_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'journeyman.db'}")
    library = ToolLibrary(task_tools(TaskService(store.tasks)))
    model = ScriptedModel([call("create_task", title="Buy milk"), call("delete_task", task_id="milk"), say("Done.")])
    async with Journeyman(library=library, store=store, model=model) as app:
        handle = await app.start(agent_with(*library), "Create it and delete it")
        assert await handle.wait() == "awaiting_approval"
        assert (await store.tasks.find()).total == 1
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace")
        assert (await handle.result()).status == "completed"
        assert (await store.tasks.find()).total == 0


# --- hello


async def test_say_hello_binds_to_its_document() -> None:
    agent = Agent.model_validate(
        {
            "name": "hello_world_agent",
            "model": "openai:gpt-5-mini",
            "instruction": "Greet.",
            "tools": [
                {
                    "name": "sayHello",
                    "description": "Returns a friendly greeting message for the given name",
                    "signature": "(name::String)==>(::String)",
                }
            ],
        }
    )
    model = ScriptedModel([call("sayHello", name="Ada"), say("Greeted.")])
    response = await run(agent, "Say hello to Ada", library=ToolLibrary([say_hello]), model=model)
    assert response.tool_calls[0].result == "Hello, Ada! Nice to meet you."


async def test_a_delete_that_was_approved_does_not_hit_a_task_that_came_afterwards(
    library: ToolLibrary, store: SqlStore, clock: FakeClock
) -> None:
    service = TaskService(store.tasks, clock)
    await service.create("Clean the garage")

    async def approver(approval: Approval) -> Approve:
        """While the person thinks, the task goes and another comes that the words fit as well."""
        await service.delete("garage")
        clock.advance(approval.requested_at.timestamp() + 5 - clock.time())
        await service.create("Garage sale, important")
        return Approve()

    told = json.loads((await played(library, call("delete_task", task_id="garage"), approver=approver)).told[0])
    assert told["code"] == "TASK_CHANGED"
    [left] = (await store.tasks.find()).tasks
    assert left.id in told["recover_action"]
    told = json.loads((await played(library, call("delete_task", task_id=left.id), approver=approving)).told[0])
    assert told["deleted"]["id"] == left.id


async def approving(approval: Approval) -> Approve:
    return Approve()
