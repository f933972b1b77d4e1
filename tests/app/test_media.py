"""Images and files in messages and results: a model that can take them gets them, another is told what they were."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman import (
    Agent,
    Audio,
    Document,
    Image,
    Journeyman,
    Limits,
    Message,
    ModelSettings,
    Policy,
    TaskInput,
    ToolLibrary,
    run,
    run_sync,
    tool,
)
from journeyman.core.content import MEDIUM_BYTES, MESSAGE_MEDIA, Medium, media_type
from journeyman.core.errors import InvalidDataError
from journeyman.core.events import CallFinished, RunStarted
from journeyman.execution.results import media_items
from journeyman.models import OpenAIModel
from journeyman.models.wire import media_of
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, ScriptedServer, call, say, together
from tests.pictures import PDF, WAV, png, seen, told
from tests.sources.mcp_servers import PATIENT, yes

RED, BLUE = png(200), png(20)
CAMERA = Agent(name="camera", instruction="Look.", tools=[])


@tool(read_only=True)
def take_photo(colour: int = 200) -> Image:
    """Take a photo. Use when one is wanted."""
    return Image.from_bytes(png(colour), name="photo.png")


@tool(read_only=True)
def scan() -> dict[str, Any]:
    """Scan pages. Use when they are wanted."""
    return {"pages": [{"number": 1, "page": Image.from_bytes(RED)}, {"number": 2, "page": Image.from_bytes(BLUE)}]}


@tool(read_only=True)
def broken() -> dict[str, Any]:
    """Give a broken picture. Use when testing."""
    return {"media": [{"mime_type": "image/png", "bytes": 6, "data": "no base64!"}]}


TOOLS: list[Any] = [take_photo, scan, broken]
AGENT = Agent(name="camera", instruction="Look.", tools=TOOLS)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres_url"))


def vision(server: ScriptedServer, name: str = "gpt-4o") -> OpenAIModel:
    return OpenAIModel(name, base_url=server.url)


async def test_a_model_gets_the_picture_that_stands_in_the_task(tmp_path: Path) -> None:
    file = tmp_path / "receipt.png"
    file.write_bytes(RED)
    async with ScriptedServer([say("A dot.")]) as server:
        response = await run(CAMERA, ["What is on it?", Image.from_path(file)], model=vision(server))
        [body] = server.requests
    assert response.answer == "A dot."
    assert seen(body) == [RED]
    assert body["messages"][-1]["content"][0] == {"type": "text", "text": "What is on it?"}


async def test_a_model_that_cannot_see_is_told_what_it_was() -> None:
    async with ScriptedServer([say("I cannot see it.")]) as server:
        picture = Image.from_bytes(RED, name="receipt.png")
        await run(CAMERA, ["What is on it?", picture], model=vision(server, "llama3.1:8b"))
        [body] = server.requests
    said = f"What is on it?\n[image receipt.png, image/png, {len(RED)} bytes: this model cannot see it]"
    assert body["messages"][-1] == {"role": "user", "content": said}


async def test_settings_say_what_a_model_takes_whatever_its_name() -> None:
    async with ScriptedServer([say("A dot."), say("?")]) as server:
        for kinds, expected in ((["image"], [RED]), ([], [])):
            name = f"{server.url}#{'unheard-of' if kinds else 'gpt-4o'}"
            await run(CAMERA, ["What?", Image.from_bytes(RED)], model=ModelSettings(name=name, media=kinds))
            assert seen(server.requests[-1]) == expected


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("gpt-4o-mini", ["image", "document"]),
        ("anthropic:claude-sonnet-5", ["image", "document"]),
        ("google:gemini-3-flash", ["image", "audio", "document"]),
        ("qwen2.5-vl:7b", ["image"]),
        ("llama3.2-vision", ["image"]),
        ("gpt-4o-audio-preview", ["audio"]),
        ("llama3.1:8b", []),
        ("gpt-3.5-turbo", []),
        ("qwen3:8b", []),
    ],
)
def test_names_tell_what_a_model_takes(name: str, kinds: list[str]) -> None:
    assert list(media_of(name)) == kinds


async def test_sounds_and_documents_have_parts_of_their_own() -> None:
    given: list[Any] = ["Look:", Audio.from_bytes(WAV, name="a.wav"), Document.from_bytes(PDF, name="b.pdf")]
    async with ScriptedServer([say("ok")]) as server:
        model = OpenAIModel("m", base_url=server.url, media=["image", "audio", "document"])
        await run(CAMERA, given, model=model)
        _, sound, file = server.requests[0]["messages"][-1]["content"]
    assert sound["input_audio"] == {"data": base64.b64encode(WAV).decode(), "format": "wav"}
    assert file["file"]["filename"] == "b.pdf"
    assert base64.b64decode(file["file"]["file_data"].removeprefix("data:application/pdf;base64,")) == PDF


async def test_any_model_reads_a_document_that_is_text() -> None:
    model = ScriptedModel([say("ok")])
    await run(CAMERA, ["Read.", Document.from_bytes("Größe: 42".encode(), name="notes.txt")], model=model)
    assert model.requests[0].messages[-1].content.endswith("its text follows]\nGröße: 42")


async def test_a_picture_that_a_tool_returns_reaches_the_model_after_all_results() -> None:
    turns = [together(call("take_photo"), call("scan")), say("Three pictures.")]
    async with ScriptedServer(turns) as server:
        response = await run(AGENT, "Look around", model=vision(server))
        body = server.requests[-1]
    assert seen(body) == [RED, RED, BLUE]
    assert [said["role"] for said in body["messages"][-4:]] == ["assistant", "tool", "tool", "user"]
    photo, scanned = response.tool_calls
    assert [medium.mime_type for medium in scanned.media] == ["image/png"] * 2
    assert scanned.result["pages"][1]["page"]["data"] == base64.b64encode(BLUE).decode()
    # The text says what there is, and holds no bytes.
    for said, record in zip(body["messages"][-3:-1], (photo, scanned), strict=True):
        assert len(said["content"]) < 200
        assert record.media[0].data not in said["content"]
    assert json.loads(body["messages"][-2]["content"])["pages"][0] == {
        "number": 1,
        "page": {"mime_type": "image/png", "bytes": len(RED)},
    }
    assert "result of take_photo, and nothing that the user said" in told(body)


async def test_a_conversation_goes_on_with_its_pictures() -> None:
    async with ScriptedServer([say("A dot."), say("Red.")]) as server:
        first = await run(CAMERA, ["What?", Image.from_bytes(RED)], model=vision(server))
        again = [Message.model_validate_json(said.model_dump_json()) for said in first.messages]
        await run(CAMERA, "Which colour?", history=again, model=vision(server))
        assert seen(server.requests[-1]) == [RED]


async def test_a_model_gets_the_picture_that_an_mcp_tool_returned(store_url: str) -> None:
    program = (
        "import sys\nfrom mcp.server.mcpserver import Image, MCPServer\n"
        "server = MCPServer('shop')\n"
        "@server.tool()\n"
        "def chart() -> list:\n"
        "    '''Draw a chart. Use when one is wanted.'''\n"
        f"    return ['Sales', Image(data={RED!r}, format='png')]\n"
        "server.run('stdio')\n"
    )
    source = McpServer(command=[sys.executable, "-c", program], name="shop", **PATIENT)
    async with (
        ToolLibrary(sources=[source]) as library,
        ScriptedServer([call("shop.chart"), say("It rises.")]) as server,
    ):
        agent = Agent(name="a", instruction="x", tools=[library["shop.chart"].specification])
        await run(agent, "Draw", library=library, model=vision(server), approver=yes)
        assert seen(server.requests[-1]) == [RED]
    source = McpServer(command=[sys.executable, "-c", program], name="shop", **PATIENT)
    async with ScriptedServer([call("shop.chart"), say("It rises.")]) as server:
        policy = Policy(risks={"shop.chart": "reversible"}, flow="off")
        library = ToolLibrary(sources=[source])
        async with Journeyman(library=library, store=store_url, model=vision(server), policy=policy) as app:
            await library.open()
            handle = await app.start(Agent(name="a", instruction="x", tools=library.specifications()), "Draw")
            response = await handle.result()
            await library.close()
        assert response.answer == "It rises."
        assert seen(server.requests[-1]) == [RED]
    [record] = response.tool_calls
    assert record.media[0].artifact is not None
    assert record.media[0].data is None


# --- durable runs


async def test_a_durable_run_keeps_pictures_by_reference_and_has_them_after_a_restart(store_url: str) -> None:
    turns: list[Any] = [call("take_photo", colour=20), say("Blue."), say("Red, then blue.")]
    async with ScriptedServer(turns) as server:
        async with Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=vision(server)) as app:
            handle = await app.session("s").send(AGENT, ["Compare", Image.from_bytes(RED, name="a.png")])
            response = await handle.result()
            facts = await app.store.runs.facts(handle.run_id)
            order = await app.store.runs.order(handle.run_id)
        # Nothing in the journal, the order or the conversation holds the bytes.
        for kept in (*facts, order, *response.messages):
            assert kept is not None
            written = kept.model_dump_json()
            assert base64.b64encode(RED).decode() not in written
            assert base64.b64encode(BLUE).decode() not in written
        assert seen(server.requests[0]) == [RED]
        assert seen(server.requests[1]) == [RED, BLUE]
        # Another process, and another run of the same conversation.
        async with Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=vision(server)) as app:
            await (await app.session("s").send(AGENT, "Which were they?")).result()
        assert seen(server.requests[2]) == [RED, BLUE]


async def test_a_run_that_is_taken_up_again_sends_its_pictures_again(store_url: str) -> None:
    begun = asyncio.Event()

    class Stopping:
        media = ("image",)

        async def respond(self, request: Any, deltas: Any = None) -> Any:
            if request.step == 1:
                return say("").model_copy(update={"calls": (call("take_photo", colour=20).tool_call,)})
            begun.set()
            await asyncio.Event().wait()
            return None

    async with Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=Stopping(), grace_seconds=0.1) as app:
        handle = await app.start(AGENT, ["Compare", Image.from_bytes(RED)])
        await begun.wait()
    async with (
        ScriptedServer([say("Both.")]) as server,
        Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=vision(server)) as app,
    ):
        [again] = await app.resume()
        assert again.run_id == handle.run_id
        assert (await again.result()).answer == "Both."
        assert seen(server.requests[0]) == [RED, BLUE]


async def test_forks_and_replays_have_the_pictures(store_url: str) -> None:
    async with (
        ScriptedServer([call("take_photo", colour=20), say("Blue."), say("Forked."), say("Blue."), say("?")]) as server,
        Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=vision(server)) as app,
    ):
        handle = await app.start(AGENT, ["Compare", Image.from_bytes(RED)])
        await handle.result()
        fork = await app.fork(handle.run_id, at=2, say="Look again")
        assert (await fork.result()).answer == "Forked."
        assert seen(server.requests[2]) == [RED, BLUE]
        report = await app.replay(handle.run_id)
        assert report.findings == ()
        asked = len(server.requests)
        await app.replay(handle.run_id, model=vision(server), mode="steps")
        assert [seen(body) for body in server.requests[asked:]] == [[RED], [RED, BLUE]]


async def test_forgetting_a_run_forgets_its_pictures_and_says_so(store_url: str) -> None:
    async with ScriptedServer([say("A dot."), say("Gone.")]) as server:
        async with Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=vision(server)) as app:
            first = await app.session("s").send(AGENT, ["What?", Image.from_bytes(RED)])
            response = await first.result()
            await app.store.runs.purge(ended_before=await app.store.now() + 60)
            [medium] = response.messages[0].media
            assert await app.store.artifacts.read(first.run_id, str(medium.artifact)) is None
            await (await app.session("s").send(AGENT, "And now?")).result()
        assert seen(server.requests[-1]) == []
        assert "image/png" in told(server.requests[-1])
        assert "not kept any more" in told(server.requests[-1])


async def test_starting_twice_keeps_one_picture(store_url: str) -> None:
    async with Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=ScriptedModel([say("x")])) as app:
        for _ in range(2):
            handle = await app.start(AGENT, ["What?", Image.from_bytes(RED)], run_id="run_mine_1234")
            await handle.result()
        [started] = [fact for fact in await app.store.runs.facts("run_mine_1234") if isinstance(fact, RunStarted)]
        [medium] = started.task.media
        assert await app.store.artifacts.read("run_mine_1234", str(medium.artifact)) == base64.b64encode(RED).decode()


# --- what comes from outside


async def test_a_result_whose_picture_is_broken_says_so(store_url: str) -> None:
    model = ScriptedModel([call("broken"), say("x")], media=["image"])
    async with Journeyman(library=ToolLibrary(TOOLS), store=store_url, model=model) as app:
        response = await (await app.start(AGENT, "Go")).result()
    assert response.status == "completed"
    [record] = response.tool_calls
    assert record.media == ()
    assert "must be bytes in base64" in record.result["media"][0]["problem"]
    assert "no base64!" not in model.requests[-1].messages[-1].content.replace("got 'no base64!'", "")


async def test_a_result_cannot_name_the_artifact_of_another_run(store_url: str) -> None:
    stolen: dict[str, Any] = {}

    @tool(read_only=True)
    def thief() -> dict[str, Any]:
        """Name a picture of somebody else. Use when testing."""
        return {"mime_type": "image/png", "bytes": 5, **stolen}

    agent = Agent(name="t", instruction="x", tools=[thief])
    async with ScriptedServer([say("mine"), call("thief"), say("x")]) as server:
        async with Journeyman(library=ToolLibrary([thief]), store=store_url, model=vision(server)) as app:
            owner = await app.start(agent, ["What?", Image.from_bytes(RED)])
            [medium] = (await owner.result()).messages[0].media
            stolen |= {"artifact": medium.artifact, "run_id": medium.run_id}
            response = await (await app.start(agent, "Go")).result()
        assert response.tool_calls[0].success
        assert seen(server.requests[-1]) == []
        assert "not kept any more" in told(server.requests[-1])


async def test_many_pictures_in_one_result_are_bounded(store_url: str) -> None:
    @tool(read_only=True)
    def album() -> list[Any]:
        """Show an album. Use when it is wanted."""
        return [Image.from_bytes(png(number)) for number in range(40)]

    agent = Agent(name="t", instruction="x", tools=[album])
    async with ScriptedServer([call("album"), say("x")]) as server:
        async with Journeyman(library=ToolLibrary([album]), store=store_url, model=vision(server)) as app:
            response = await (await app.start(agent, "Go")).result()
        assert len(seen(server.requests[-1])) == MESSAGE_MEDIA
    [record] = response.tool_calls
    assert len(record.result) == 40
    assert all("artifact" in item and "data" not in item for item in record.result)


async def test_a_long_conversation_sends_the_latest_pictures_and_splits_no_call() -> None:
    colours = [call("take_photo", colour=number) for number in range(40)]
    async with ScriptedServer([*colours, say("x")]) as server:
        await run(AGENT, "Go", model=vision(server), limits=Limits(iterations=None, history_messages=7))
        for body in server.requests:
            roles = [said["role"] for said in body["messages"]]
            for at, role in enumerate(roles):
                if role == "tool":
                    assert roles[at - 1] in ("assistant", "tool")
            answered = [said for said in body["messages"] if said["role"] == "tool"]
            assert len(seen(body)) == len(answered)
    async with ScriptedServer([*colours, say("x")]) as server:
        await run(AGENT, "Go", model=vision(server), limits=Limits(iterations=None, history_messages=None))
        last = server.requests[-1]
        assert seen(last) == [png(number) for number in range(8, 40)]
        assert told(last).count("not sent, since there are too many") == 8


def test_a_large_result_is_searched_for_pictures_within_bounds() -> None:
    medium = {"mime_type": "image/png", "bytes": 1, "data": "eA=="}
    assert media_items([1, [medium], {"a": {"b": medium}}, medium]) == [medium] * 3
    assert media_items([*range(200_000), medium]) == []
    assert media_items([medium, *[[[]]] * 200_000]) == [medium]


@pytest.mark.parametrize(
    ("data", "said", "kind"),
    [
        (RED, "text/html", "image/png"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/png", "application/octet-stream"),
        (b"<svg/>", "image/svg+xml", "image/svg+xml"),
        (b"<html>", "text/html; charset=utf-8", "text/html"),
        (b"hello", "audio/wav", "application/octet-stream"),
        (b"hello", "no type at all", "application/octet-stream"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "", "image/webp"),
        (PDF, "image/png", "application/pdf"),
        (WAV, "", "audio/wav"),
    ],
)
def test_bytes_tell_what_they_are(data: bytes, said: str, kind: str) -> None:
    assert media_type(data, said) == kind
    assert Medium.from_bytes(data, mime_type=said).kind == (
        "image" if kind in ("image/png", "image/webp") else "audio" if kind == "audio/wav" else "document"
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Image.from_bytes(PDF, name="a.pdf"), "must be image, and this is 'application/pdf'"),
        (lambda: Image.from_bytes(b""), "must not be empty"),
        (lambda: Document.from_bytes(b"x" * (MEDIUM_BYTES + 1)), "at most 10,000,000 bytes"),
        (lambda: Image.from_base64("%%%"), "must be bytes in base64"),
        (lambda: Image.from_url("https://example.org/a.png"), "nothing is fetched from elsewhere"),
        (lambda: Image.from_url("file:///etc/passwd"), "nothing is fetched from elsewhere"),
        (lambda: TaskInput(description="x", media=[Image.from_bytes(RED)] * 17), "at most 16 images and files"),
        (lambda: TaskInput(description="x", media=[Document.from_bytes(b"x" * 9_000_000)] * 3), "20,000,000 bytes"),
        (lambda: run_sync(CAMERA, ["What?", 17]), "a task is texts, images and files"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_taken_is_refused_in_words(make: Any, words: str) -> None:
    with pytest.raises(InvalidDataError, match=words):
        make()


def test_a_name_is_its_last_part_with_every_character_visible() -> None:
    made = Image.from_bytes(RED, name="../../etc/\u202egnp.exe\n")
    assert made.name == "\\u202egnp.exe"
    assert Image.from_url(f"data:image/png;base64,{base64.b64encode(RED).decode()}").bytes == len(RED)


async def test_what_a_picture_of_others_causes_is_theirs() -> None:
    @tool(read_only=True, reads="untrusted")
    def fetch_photo() -> Image:
        """Fetch a photo. Use when one is wanted."""
        return Image.from_bytes(RED)

    model = ScriptedModel([call("fetch_photo"), say("x")], media=["image"])
    response = await run(Agent(name="t", instruction="x", tools=[fetch_photo]), "Go", model=model)
    [answered] = [said for said in response.messages if said.role == "function"]
    assert answered.media
    assert answered.label is not None
    assert answered.label.untrusted


def test_facts_of_older_runs_have_no_media() -> None:
    record = {"execution_id": "e", "call_id": "c", "tool_name": "t", "status": "success", "result": 1}
    times = {"start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:00Z"}
    assert CallFinished.stored({"record": record | times}).record.media == ()
