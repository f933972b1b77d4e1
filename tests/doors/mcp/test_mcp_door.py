"""Our library as an MCP server: the official client calls tools through it, in both versions of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.memory import create_client_server_memory_streams
from pydantic import BaseModel

from journeyman import Document, Image, Policy, Principal, RiskLevel, ToolContext, ToolError, ToolLibrary, tool
from journeyman.app.service import Service, open_service
from journeyman.core.runs import RunStatus
from journeyman.doors.mcp import Gateway
from journeyman.doors.mcp.calls import Places
from tests.waiting import until

ADA = Principal("ada", permissions={"approvals:decide", "box:open"})
BOB = Principal("bob")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
PLACES = Places(decide=lambda approval: f"Decide about {approval.id}.", settle=lambda run, call: f"Settle {call}.")
BOTH = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Wish(BaseModel):
    colour: Colour
    coats: int = 1


class Box:
    """What the tools of these tests work on."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.waiting = asyncio.Event()

    def tools(self) -> ToolLibrary:
        @tool(read_only=True)
        def look(at: str) -> dict[str, Any]:
            """Look at something."""
            if at == "nothing":
                raise ToolError("NOTHING", "there is nothing", recover_action="Look elsewhere")
            return {"seen": at}

        @tool(risk=RiskLevel.IRREVERSIBLE)
        def delete(name: str) -> str:
            """Delete something."""
            self.deleted.append(name)
            return f"deleted {name}"

        @tool(read_only=True, permissions={"box:open"})
        def open_box() -> str:
            """Open the box."""
            return "open"

        @tool(read_only=True)
        def picture() -> dict[str, Any]:
            """Show a picture."""
            return {"text": "a dot", "media": [{"mime_type": "image/png", "bytes": 68, "data": PIXEL}]}

        @tool(read_only=True)
        def photo() -> Image:
            """Take a photo."""
            return Image.from_base64(PIXEL, name="photo.png")

        @tool(read_only=True)
        def report() -> list[Any]:
            """Write a report."""
            return [
                "Sales",
                {"chart": Image.from_base64(PIXEL)},
                Document.from_bytes(b"%PDF-1.4", name="all sales.pdf"),
            ]

        @tool(read_only=True)
        async def work(context: ToolContext) -> str:
            """Work for a while."""
            context.progress("begun", 0.5)
            self.waiting.set()
            await asyncio.sleep(0.05)
            return "done"

        @tool(read_only=True)
        async def paint(context: ToolContext) -> str:
            """Ask for what a class says."""
            wish = await context.ask("Which colour?", Wish)
            return f"painted {wish!r}"

        @tool(read_only=True)
        async def choose(context: ToolContext) -> str:
            """Ask for a size, and then for a colour."""
            said = [
                await context.ask(f"Which {what}?", {"type": "object", "properties": {what: {"type": "string"}}})
                for what in ("size", "colour")
            ]
            return f"chosen: {said}"

        @tool(risk=RiskLevel.REVERSIBLE)
        async def hang() -> str:
            """Never end."""
            self.waiting.set()
            await asyncio.Event().wait()
            return ""

        library = ToolLibrary([look, delete, open_box, picture, photo, report, work, choose, paint, hang])
        library.register(library["look"].with_changes(name="box.look-at"))
        return library


@asynccontextmanager
async def serving(
    tmp_path: Path, box: Box | None = None, *, principal: Principal = ADA, policy: Policy | None = None, **options: Any
) -> AsyncIterator[tuple[Gateway, Service]]:
    store = f"sqlite:///{tmp_path / 'gateway.db'}"
    async with open_service(store=store, library=(box or Box()).tools(), policy=policy) as service:
        gateway = Gateway(service, principal=lambda _: principal, places=PLACES, **options)
        async with gateway.watching():
            yield gateway, service


class User:
    """Whoever sits at the client: says what a test wants, and remembers what was asked."""

    def __init__(self, action: str, **content: Any) -> None:
        self.asked: list[str] = []
        self._answer = types.ElicitResult(action=action, content=content or None)

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        return self._answer


def text_of(result: types.CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_a_tool_that_is_not_there_is_counted_as_missing(tmp_path: Path) -> None:
    async with serving(tmp_path, principal=BOB) as (gateway, service), Client(gateway.server) as client:
        for name in ("book_flight", "open_box"):  # the second one is there, and not for him
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, {})
        [gap] = await service.app.gaps.demand()
        assert (gap.missing, gap.times, gap.report.attempted_task) == ("book flight", 1, "book_flight")
        assert "open_box" not in gap.report.existing_tools_checked
        assert [found.key for found in await service.app.gaps.demand(principal_id="bob")] == [gap.key]


@BOTH
async def test_tools_are_told_as_clients_take_them_and_called(tmp_path: Path, mode: str) -> None:
    async with serving(tmp_path) as (gateway, _), Client(gateway.server, mode=mode) as client:
        told = {item.name: item for item in (await client.list_tools()).tools}
        assert "box_look-at" in told
        assert told["box_look-at"].title == "box.look-at"
        hints = told["delete"].annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (False, True, False)
        for name in ("box_look-at", "box.look-at", "look"):
            found = await client.call_tool(name, {"at": "stars"})
            assert (found.structured_content, found.is_error) == ({"seen": "stars"}, False)
        failed = await client.call_tool("look", {"at": "nothing"})
        assert (text_of(failed), failed.is_error) == ("NOTHING: there is nothing\nLook elsewhere", True)
        wrong = await client.call_tool("look", {"att": 1})
        assert wrong.is_error
        assert "INVALID_ARGUMENTS" in text_of(wrong)
        with pytest.raises(MCPError, match="Unknown tool: fly"):
            await client.call_tool("fly", {})
        seen = await client.call_tool("picture", {})
        assert [block.type for block in seen.content] == ["text", "image"]


@BOTH
async def test_what_a_tool_returns_as_images_and_files_are_blocks_of_their_own(tmp_path: Path, mode: str) -> None:
    async with serving(tmp_path) as (gateway, _), Client(gateway.server, mode=mode) as client:
        photo = await client.call_tool("photo", {})
        assert not photo.is_error
        assert isinstance(photo.content[1], types.ImageContent)
        assert (photo.content[1].data, photo.content[1].mime_type) == (PIXEL, "image/png")
        report = await client.call_tool("report", {})
        assert [block.type for block in report.content] == ["text", "image", "resource"]
        [text, _, file] = report.content
        assert isinstance(text, types.TextContent)
        assert PIXEL not in text.text
        assert isinstance(file, types.EmbeddedResource)
        assert (str(file.resource.uri), file.resource.mime_type) == ("attachment:all%20sales.pdf", "application/pdf")


@BOTH
@pytest.mark.parametrize(
    ("user", "told"),
    [
        (User("accept", approve=True), "deleted x"),
        (User("accept", approve=False, reason="too early"), "too early"),
        (User("decline"), "the user declined"),
    ],
)
async def test_an_approval_is_asked_through_the_client(tmp_path: Path, mode: str, user: User, told: str) -> None:
    box, user.asked = Box(), []
    async with (
        serving(tmp_path, box) as (gateway, service),
        Client(gateway.server, mode=mode, elicitation_callback=user) as client,
    ):
        result = await client.call_tool("delete", {"name": "x"})
        assert told in text_of(result)
        [question] = user.asked
        assert "Allow the call of 'delete' (irreversible)?" in question
        assert '{"name":"x"}' in question
        [audited] = await service.app.store.approvals.list()
        assert audited.decided_by == "ada"
    assert box.deleted == (["x"] if told == "deleted x" else [])


@BOTH
async def test_without_elicitation_a_call_waits_and_the_same_call_gets_its_result(
    tmp_path: Path, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    box = Box()
    async with serving(tmp_path, box) as (gateway, service), Client(gateway.server, mode=mode) as client:
        for _ in range(2):
            waiting = await client.call_tool("delete", {"name": "x"})
            assert waiting.is_error
            assert "has not run yet: 'delete' (irreversible) waits for a person's approval" in text_of(waiting)
        [approval] = await service.app.approvals.pending()
        # The person is told how to decide; the model, which may have a shell, only that somebody must.
        assert f"Decide about {approval.id}." in caplog.text
        assert f"Only a person can give it, elsewhere: tell the user that {approval.id!r} waits" in text_of(waiting)
        assert "Decide about" not in text_of(waiting)
        await service.app.approvals.approve(approval.id, by="grace")
        done = await client.call_tool("delete", {"name": "x"})
        assert text_of(done) == "deleted x"
        again = await client.call_tool("delete", {"name": "x"})
        assert "has not run yet" in text_of(again)
    assert box.deleted == ["x"]


@pytest.mark.parametrize("why", ["dismissed", "not permitted", "four eyes", "switched off"])
async def test_where_the_users_word_does_not_count_the_call_waits(tmp_path: Path, why: str) -> None:
    box, user = Box(), User("cancel") if why == "dismissed" else User("accept", approve=True)
    policy = Policy(four_eyes=why == "four eyes")
    principal = BOB if why == "not permitted" else ADA
    async with (
        serving(tmp_path, box, principal=principal, policy=policy, elicit=why != "switched off") as (gateway, _),
        Client(gateway.server, mode="legacy", elicitation_callback=user) as client,
    ):
        assert "has not run yet" in text_of(await client.call_tool("delete", {"name": "x"}))
    assert (len(user.asked), box.deleted) == (1 if why == "dismissed" else 0, [])


async def test_an_answer_to_another_call_is_refused(tmp_path: Path) -> None:
    box = Box()
    async with (
        serving(tmp_path, box) as (gateway, _),
        Client(gateway.server, mode="2026-07-28", elicitation_callback=User("accept", approve=True)) as client,
    ):
        asked = await client.session.call_tool("delete", {"name": "x"}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        answer: dict[str, Any] = {"approval": types.ElicitResult(action="accept", content={"approve": True})}
        for name, arguments in (("delete", {"name": "y"}), ("look", {"at": "x"})):
            with pytest.raises(MCPError):
                await client.session.call_tool(
                    name, arguments, input_responses=answer, request_state=asked.request_state
                )
    assert box.deleted == []


async def test_a_long_call_reports_progress(tmp_path: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with serving(tmp_path) as (gateway, _), Client(gateway.server, mode="legacy") as client:
        result = await client.call_tool("work", {}, progress_callback=hear)
        assert text_of(result) == "done"
        await until(lambda: bool(heard))
    assert heard == [(0.5, 1.0, "begun")]


@BOTH
@pytest.mark.parametrize(
    ("user", "told"),
    [
        (User("accept", size="large"), "chosen: [{'size': 'large'}, {'size': 'large'}]"),
        (User("decline"), "chosen: [None, None]"),
    ],
)
async def test_a_tool_asks_whoever_has_made_the_call(tmp_path: Path, mode: str, user: User, told: str) -> None:
    async with (
        serving(tmp_path) as (gateway, service),
        Client(gateway.server, mode=mode, elicitation_callback=user) as client,
    ):
        result = await client.call_tool("choose", {})
        assert told in text_of(result)
        await until(lambda: not service.app.runner.shared.executors.callers)  # nobody is kept longer than their call
    assert user.asked[-2:] == ["Which size?", "Which colour?"]


@BOTH
@pytest.mark.parametrize(
    ("user", "told"),
    [
        (User("accept", colour="blue"), "painted Wish(colour=<Colour.BLUE: 'blue'>, coats=1)"),
        (User("accept", colour="green"), "WRONG_ANSWER: the answer to 'Which colour?' does not fit"),
        (User("decline"), "painted None"),
    ],
)
async def test_a_tool_asks_for_what_a_class_says(tmp_path: Path, mode: str, user: User, told: str) -> None:
    async with (
        serving(tmp_path) as (gateway, _),
        Client(gateway.server, mode=mode, elicitation_callback=user) as client,
    ):
        assert told in text_of(await client.call_tool("paint", {}))


async def test_a_client_that_cannot_be_asked_is_told_what_it_lacks(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, _):
        async with Client(gateway.server, mode="legacy") as client:
            assert "NOBODY_TO_ASK" in text_of(await client.call_tool("choose", {}))
        async with Client(gateway.server) as client:
            with pytest.raises(MCPError, match="does not answer") as told:
                await client.call_tool("choose", {})
        assert told.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
        assert told.value.data == {"requiredCapabilities": {"elicitation": {}}}


@asynccontextmanager
async def over_a_pipe(gateway: Gateway, mode: str) -> AsyncIterator[Client]:
    """The official client, over a stream as standard input and output are one."""
    async with create_client_server_memory_streams() as (client_side, (read, write)):
        serving = asyncio.ensure_future(gateway.server.run(read, write, gateway.server.create_initialization_options()))

        @asynccontextmanager
        async def transport() -> AsyncIterator[Any]:
            yield client_side

        try:
            async with Client(transport(), mode=mode) as client:
                yield client
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


@BOTH
async def test_a_cancelled_call_ends_its_run_and_may_be_made_again(tmp_path: Path, mode: str) -> None:
    box = Box()
    async with serving(tmp_path, box) as (gateway, service), over_a_pipe(gateway, mode) as client:
        for runs in (1, 2):  # the same call later is another call: nothing of the first one is left
            calling = asyncio.ensure_future(client.call_tool("hang", {}))
            await box.waiting.wait()
            box.waiting.clear()
            calling.cancel()
            await asyncio.wait((calling,))

            async def ended(count: int = runs) -> bool:
                return [row.status for row in await service.app.store.runs.list()] == [RunStatus.CANCELLED] * count

            await until(ended)


@BOTH
async def test_runs_are_resources_of_whom_they_belong_to(tmp_path: Path, mode: str) -> None:
    async with serving(tmp_path) as (gateway, service):
        async with Client(gateway.server, mode=mode) as client:
            await client.call_tool("look", {"at": "stars"})
            [listed] = (await client.list_resources()).resources
            read = (await client.read_resource(str(listed.uri))).contents[0]
            assert isinstance(read, types.TextResourceContents)
            told = json.loads(read.text)
            assert (told["status"], told["calls"][0]["result"]) == ("completed", {"seen": "stars"})
        theirs = Gateway(service, principal=lambda _: BOB, places=PLACES)
        async with Client(theirs.server, mode=mode) as client:
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError, match="Resource not found") as caught:
                await client.read_resource(str(listed.uri))
            assert caught.value.code == (-32002 if mode == "legacy" else types.INVALID_PARAMS)
            names = [item.name for item in (await client.list_tools()).tools]
            assert "open_box" not in names
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("open_box", {})


async def test_agents_are_prompts(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, _), Client(gateway.server, mode="legacy") as client:
        [prompt] = (await client.list_prompts()).prompts
        assert prompt.name == "assistant"
        filled = await client.get_prompt("assistant", {"task": "Tidy up."})
        content = filled.messages[0].content
        assert isinstance(content, types.TextContent)
        assert content.text.endswith("Task: Tidy up.")
        with pytest.raises(MCPError, match="'task' must say what to do"):
            await client.get_prompt("assistant", {})


async def test_clients_hear_when_the_tools_change(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(message: Any) -> None:
        heard.append(type(message).__name__)

    async with (
        serving(tmp_path) as (gateway, service),
        Client(gateway.server, mode="legacy", message_handler=hear) as client,
    ):
        await client.list_tools()
        service.app.library.unregister("look")
        await until(lambda: "ToolListChangedNotification" in heard)
        assert "look" not in [item.name for item in (await client.list_tools()).tools]


async def test_what_a_client_tells_of_its_conversation_is_what_arguments_are_held_against(tmp_path: Path) -> None:
    box = Box()

    async def called(client: Client, name: str, said: Any) -> types.CallToolResult:
        meta: Any = {} if said is None else {"journeyman/said": said}
        return await client.call_tool("delete", {"name": name}, meta=meta)

    policy = Policy(grounding="refuse", risks={"delete": RiskLevel.REVERSIBLE})
    async with serving(tmp_path, box, policy=policy) as (gateway, _), Client(gateway.server) as client:
        refused = await called(client, "box-4190", "Delete my box")
        assert refused.is_error
        assert "box-4190" in text_of(refused)
        assert box.deleted == []
        await called(client, "box-4190", ["Delete my box", '{"name": "box-4190"}'])
        await called(client, "box-4191", None)
        assert box.deleted == ["box-4190", "box-4191"], "of the last nobody knows what was said"
        with pytest.raises(MCPError, match="journeyman/said"):
            await called(client, "box-4192", 5)
