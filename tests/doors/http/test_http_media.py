"""Images and files over HTTP: what a chat and an OpenAI client hand over reaches the model, within bounds."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from journeyman import Agent, Principal
from journeyman.core.content import MEDIUM_BYTES
from journeyman.doors.http import Tokens
from journeyman.models import OpenAIModel
from journeyman.testing import ScriptedServer, say
from tests.doors.http.serving import Running, served
from tests.pictures import PDF, WAV, png, seen, told, url

RED = png(200)
AGENT = Agent(name="assistant", instruction="Look.")


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@asynccontextmanager
async def looking(folder: Path, *turns: Any, **parts: Any) -> AsyncIterator[tuple[Running, ScriptedServer]]:
    async with ScriptedServer(turns or [say("A dot.")] * 9) as model:
        seeing = OpenAIModel("gpt-4o", base_url=model.url)
        async with served(folder, agents=[AGENT], model=seeing, **parts) as server:
            yield server, model


async def test_a_chat_takes_pictures_and_its_conversation_keeps_them(tmp_path: Path) -> None:
    async with looking(tmp_path) as (server, model), server.client(headers={"Accept": "application/json"}) as client:
        given = [{"data": coded(RED), "name": "receipt.png", "mime_type": "text/html"}]
        body = {"message": "What is on it?", "session_id": "s", "media": given, "run_id": "mine-12345"}
        first = await client.post("/api/v1/chat", json=body)
        assert first.status_code == 200, first.text
        assert first.json()["answer"] == "A dot."
        assert seen(model.requests[0]) == [RED]
        # The same request again starts nothing; with another picture it is another request.
        assert (await client.post("/api/v1/chat", json=body)).json()["run_id"] == first.json()["run_id"]
        other = body | {"media": [{"data": coded(png(3))}]}
        assert (await client.post("/api/v1/chat", json=other)).status_code == 409
        assert len(model.requests) == 1
        await client.post("/api/v1/chat", json={"message": "And which colour?", "session_id": "s"})
        assert seen(model.requests[1]) == [RED]
        told_of = (await client.get("/api/v1/chat/history/s")).json()["messages"][0]["media"]
        assert [(item["name"], item["mime_type"]) for item in told_of] == [("receipt.png", "image/png")]
        assert "data" not in told_of[0]
        artifact = f"/api/v1/runs/{told_of[0]['run_id']}/artifacts/{told_of[0]['artifact']}"
        kept = await client.get(artifact)
        assert base64.b64decode(kept.text) == RED
        assert kept.headers["content-type"].startswith("text/plain")
        assert kept.headers["x-content-type-options"] == "nosniff"


async def test_a_program_sends_files_as_they_are(tmp_path: Path) -> None:
    """By a form, as ``curl -F`` writes it, with the bytes that would end a careless reader's line or part."""
    odd = RED + b"\r\n--\r\n\n\r\x00--"
    async with looking(tmp_path) as (server, model), server.client(headers={"Accept": "application/json"}) as client:
        data = {"message": "Was ist “das”?", "session_id": "s", "max_iterations": "3", "run_id": "mine-12345"}
        files = [("file", ('a "b" ü.png', odd, "image/png")), ("any", ("note.txt", b"12\r\n34", "text/plain"))]
        first = await client.post("/api/v1/chat", data=data, files=files)
        assert first.status_code == 200, first.text
        assert seen(model.requests[0]) == [odd]
        assert "12\r\n34" in told(model.requests[0])
        assert "Was ist “das”?" in told(model.requests[0])
        [said, _] = (await client.get("/api/v1/chat/history/s")).json()["messages"]
        assert [item["mime_type"] for item in said["media"]] == ["image/png", "text/plain"]
        # It is the request that JSON would be: sent again in that form, it starts nothing.
        given = [{"data": coded(odd)}, {"data": coded(b"12\r\n34"), "mime_type": "text/plain"}]
        body = {**data, "max_iterations": 3, "media": given}
        assert (await client.post("/api/v1/chat", json=body)).json()["run_id"] == first.json()["run_id"]
        assert len(model.requests) == 1


def form(*parts: tuple[str, bytes], end: bytes = b"--x--\r\n") -> bytes:
    return (
        b"".join(
            b"--x\r\nContent-Disposition: form-data; " + f"{head}\r\n\r\n".encode() + data + b"\r\n"
            for head, data in parts
        )
        + end
    )


SAYS = ('name="message"', b"What?")


PICTURE = ('name="f"; filename="a.png"', RED)
BAD_FORMS = [
    (form(SAYS, end=b""), "it is no whole form"),
    (form(SAYS)[:-9], "it is no whole form"),
    (b"", "body: Field required"),
    (b'{"message": "What?"}', "it is no whole form"),
    (form(SAYS, SAYS), "message: give it once"),
    (form(('name="message"', b"\xff")), "message: must be text in UTF-8"),
    (form(SAYS, ('name="max_iterations"', b"many")), "max_iterations: it is not JSON"),
    (form(SAYS, ('name="surprise"', b"1")), "surprise: Extra inputs are not permitted"),
    (form(SAYS, ('name="session_id"', b"a\x00b")), "session_id"),
    (form(("x", b"y")), "JSON"),
    (form(SAYS, ('name="f"; filename="a.png"', b"")), "media.0.data"),
    (form(SAYS, *[PICTURE] * 17), "at most 16 items"),
    (form(SAYS, *[PICTURE] * 99), "at most 23 parts"),
]


async def test_a_form_that_says_something_else_is_refused_in_words(tmp_path: Path) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    async with looking(tmp_path) as (server, model), server.client(headers=headers) as client:
        for body, words in BAD_FORMS:
            answer = await client.post("/api/v1/chat", content=body)
            assert answer.status_code == 422, answer.text
            assert words in answer.json()["error"]
        assert model.requests == []
        assert (await client.post("/api/v1/tools/nothing/call", content=form(SAYS))).status_code == 415


async def test_nobody_else_reads_a_picture(tmp_path: Path) -> None:
    tokens = Tokens({"ada-token-123456": Principal("ada"), "bob-token-123456": Principal("bob")})
    async with looking(tmp_path, tokens=tokens) as (server, _):
        headers = {"Accept": "application/json", "Authorization": "Bearer ada-token-123456"}
        async with server.client(headers=headers) as client:
            body = {"message": "What?", "session_id": "s", "media": [{"data": coded(RED)}]}
            await client.post("/api/v1/chat", json=body)
            [medium] = (await client.get("/api/v1/chat/history/s")).json()["messages"][0]["media"]
            path = f"/api/v1/runs/{medium['run_id']}/artifacts/{medium['artifact']}"
            assert (await client.get(path)).status_code == 200
            bob = {"Authorization": "Bearer bob-token-123456"}
            assert (await client.get(path, headers=bob)).status_code == 404


@pytest.mark.parametrize(
    ("media", "words"),
    [
        ([{"data": "%%%"}], "media.0.data: must be bytes in base64"),
        ([{"data": coded(b"x" * (MEDIUM_BYTES + 1))}], "media.0.data: must have at most 10,000,000 bytes"),
        ([{"data": coded(b"x" * 9_000_000)}] * 3, "BODY_TOO_LARGE"),
        ([{"data": coded(b"x")}] * 17, "at most 16 items"),
        ([{"data": ""}], "media.0.data"),
        ([{"data": coded(RED), "artifact": "0" * 64, "run_id": "run_of_others"}], "media.0.artifact"),
        ([{"url": "https://example.org/a.png"}], "media.0"),
    ],
)
async def test_what_a_chat_cannot_take_is_refused_in_words(tmp_path: Path, media: Any, words: str) -> None:
    async with looking(tmp_path) as (server, model), server.client() as client:
        answer = await client.post("/api/v1/chat", json={"message": "What?", "media": media})
        assert answer.status_code in (413, 422)
        assert words in answer.text
        assert model.requests == []


async def test_a_wrong_media_type_changes_nothing(tmp_path: Path) -> None:
    async with looking(tmp_path) as (server, model), server.client(headers={"Accept": "application/json"}) as client:
        hidden = [{"data": coded(b"<script>alert(1)</script>"), "mime_type": "image/png", "name": "a.png"}]
        answer = await client.post("/api/v1/chat", json={"message": "What?", "media": hidden})
        assert answer.status_code == 200
        assert seen(model.requests[0]) == []
        assert "[file a.png, application/octet-stream, 25 bytes: this model cannot read it]" in told(model.requests[0])


async def test_a_picture_of_the_largest_size_passes_whole(tmp_path: Path) -> None:
    picture = RED + b"\0" * (MEDIUM_BYTES - len(RED))
    async with looking(tmp_path) as (server, model), server.client(headers={"Accept": "application/json"}) as client:
        body = {"message": "What?", "media": [{"data": coded(picture)}]}
        assert (await client.post("/api/v1/chat", json=body)).status_code == 200
        assert seen(model.requests[0]) == [picture]


# --- OpenAI's client


async def test_openais_client_sends_pictures_sounds_and_files(tmp_path: Path) -> None:
    async with looking(tmp_path) as (server, model):
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        parts: Any = [
            {"type": "text", "text": "What is on it?"},
            {"type": "image_url", "image_url": {"url": url(RED), "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": coded(WAV), "format": "wav"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{coded(PDF)}"}},
        ]
        said: Any = [{"role": "user", "content": parts}]
        answer = await client.chat.completions.create(model="assistant", messages=said)
        assert answer.choices[0].message.content == "A dot."
        [body] = model.requests
        assert seen(body) == [RED]
        assert "this model cannot hear it" in told(body)
        assert body["messages"][-1]["content"][-1]["file"]["filename"] == "a.pdf"
        # What was said before is sent again by the client, and goes on with its pictures.
        said += [{"role": "assistant", "content": "A dot."}, {"role": "user", "content": "Which colour?"}]
        await client.chat.completions.create(model="assistant", messages=said)
        assert seen(model.requests[-1]) == [RED]
        alone: Any = [{"role": "user", "content": parts[1:2]}]
        await client.chat.completions.create(model="assistant", messages=alone)
        assert seen(model.requests[-1]) == [RED]
        await client.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}],
            "nothing is fetched from elsewhere",
        ),
        ([{"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}}], "nothing is fetched from elsewhere"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,%%"}}], "must be bytes in base64"),
        ([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{coded(b'<svg/>')}"}}], "must be image"),
        ([{"type": "image_url"}], "needs a field 'image_url'"),
        ([{"type": "video", "video": {}}], "a part of the type 'video'"),
        ([{"type": "image_url", "image_url": {"url": url(RED)}}] * 17, "at most 16 images and files"),
        ("x" * 1_000_001, "more than 1,000,000 characters"),
    ],
)
async def test_what_an_openai_client_cannot_send_is_refused_in_words(tmp_path: Path, content: Any, words: str) -> None:
    async with looking(tmp_path) as (server, model), server.client() as client:
        body = {"model": "assistant", "messages": [{"role": "user", "content": content}]}
        answer: httpx.Response = await client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 400, answer.text
        assert words in answer.json()["error"]["message"]
        assert model.requests == []


async def test_only_the_user_shows_pictures(tmp_path: Path) -> None:
    async with looking(tmp_path) as (server, _), server.client() as client:
        shown = [{"type": "image_url", "image_url": {"url": url(RED)}}]
        said = [{"role": "assistant", "content": shown}, {"role": "user", "content": "What?"}]
        answer = await client.post("/v1/chat/completions", json={"model": "assistant", "messages": said})
        assert answer.status_code == 400
        assert "only the user's messages may hold images" in answer.text
