"""Pictures and files at the terminal: they go with a task or a message, and a line tells of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman.core.runs import AgentResponse
from journeyman.testing import call, say
from tests.doors.cli.driving import Cli, Piped, Serve
from tests.pictures import png, seen

RED = png(200)
SHOP = f"""
from journeyman import Agent, Image, tool

@tool(read_only=True)
def take_photo() -> Image:
    '''Take a photo. Use when one is wanted.'''
    return Image.from_bytes({RED!r}, name="photo.png")

agent = Agent(name="camera", instruction="Look.", tools=[take_photo])
"""


@pytest.fixture(autouse=True)
def camera(tmp_path: Path) -> None:
    (tmp_path / "camera.py").write_text(SHOP)
    (tmp_path / "receipt.png").write_bytes(RED)
    (tmp_path / "empty.png").touch()


@pytest.mark.parametrize("options", [[], ["--durable"]])
def test_a_file_goes_with_a_task(cli: Cli, serve: Serve, options: list[str]) -> None:
    with serve(call("take_photo"), say("Two dots.")) as server:
        model = f"{server.url}#gpt-4o"
        task = ["run", "What is on it?", "--attach", "receipt.png", "--agent", "camera:agent", "--model", model]
        ended = cli(*task, *options)
        assert (ended.code, ended.out) == (0, "Two dots.\n")
        assert f"+ [image receipt.png, image/png, {len(RED)} bytes]" in ended.err
        assert f"+ [image photo.png, image/png, {len(RED)} bytes]" in ended.err
        assert [seen(body) for body in server.requests] == [[RED], [RED, RED]]


def test_json_has_what_was_said_with_it(cli: Cli, serve: Serve) -> None:
    with serve(say("A dot.")) as server:
        task = ["run", "What?", "--attach", "receipt.png", "--agent", "camera:agent", "--model", f"{server.url}#gpt-4o"]
        ended = cli(*task, "--json")
    [medium] = AgentResponse.model_validate_json(ended.out).messages[0].media
    assert medium.name == "receipt.png"


@pytest.mark.parametrize(
    ("file", "words"),
    [("nothing.png", "No such file or directory"), ("empty.png", "must not be empty"), (".", "Is a directory")],
)
def test_a_file_that_cannot_be_taken_is_wrong_usage(cli: Cli, file: str, words: str) -> None:
    ended = cli("run", "What?", "--attach", file, "--agent", "camera:agent")
    assert ended.code == 2
    assert f"--attach {file!r}" in ended.err
    assert words in ended.err


def test_a_chat_takes_files_for_the_next_message(piped: Piped, serve: Serve) -> None:
    with serve(say("A dot."), say("Still.")) as server:
        lines = "/attach receipt.png\n/attach nothing.png\nWhat is on it?\nAnd now?\n/history\n"
        ended = piped(lines, "--agent", "camera:agent", "--model", f"{server.url}#gpt-4o")
        assert [seen(body) for body in server.requests] == [[RED], [RED]]
    assert "/attach 'nothing.png' cannot be read" in ended.err
    assert ended.err.count("[image receipt.png") >= 2
    assert "you: What is on it? [image receipt.png" in ended.err


def test_a_call_shows_what_it_returned_and_no_bytes(cli: Cli) -> None:
    ended = cli("tools", "call", "take_photo", "--library", "camera.py")
    assert ended.code == 0
    assert f"photo.png, image/png, {len(RED)} bytes" in ended.out
    assert "iVBOR" not in ended.out + ended.err
