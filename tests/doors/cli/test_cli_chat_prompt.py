"""The line in which a person writes: its keys, its history, its completion. Keys come from a pipe, nothing is drawn."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.layout.processors import TransformationInput
from prompt_toolkit.output import DummyOutput

from journeyman.doors.cli import prompting
from journeyman.doors.cli.chat import COMMANDS, parsed, unknown
from journeyman.doors.cli.prompting import ChatPrompt, CommandCompleter, KeptHistory, history_file

UP, LEFT, BACKSPACE = "\x1b[A", "\x1b[D", "\x7f"
CTRL_A, CTRL_C, CTRL_D, CTRL_R = "\x01", "\x03", "\x04", "\x12"
PASTE = "\x1b[200~{}\x1b[201~"

Read = Callable[..., list[str | None]]


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        monkeypatch.setattr(prompting, "_input", lambda stream: pipe)
        monkeypatch.setattr(prompting, "_output", DummyOutput)
        yield pipe


async def choices(name: str) -> Sequence[tuple[str, str]]:
    given = {"/session": [("monday", "Buy milk"), ("tuesday\x1b[2J", "Evil \x1b[2J")], "/tools": [("count_boxes", "")]}
    return given.get(name, ())


@pytest.fixture
def read(keys: PipeInput) -> Read:
    """What a program that was just started reads, message by message."""

    def reading(typed: str | bytes, *, messages: int = 1) -> list[str | None]:
        async def whole() -> list[str | None]:
            prompt = ChatPrompt(COMMANDS, choices)
            keys.send_bytes(typed if isinstance(typed, bytes) else typed.encode())
            return [await prompt.read() for _ in range(messages)]

        return asyncio.run(whole())

    return reading


# --- keys


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (f"Helo{LEFT}l\r", "Hello"),
        (f"world{CTRL_A}Hello \r", "Hello world"),
        (f"日本語{BACKSPACE}{LEFT}x👩‍🚀\r", "日x👩‍🚀本"),
        ("first\\\rsecond\r", "first\nsecond"),
        ("first\x1b\rsecond\r", "first\nsecond"),
        (f"{PASTE.format('one' + chr(10) + 'two' + chr(13) + chr(10) + 'three')}!\r", "one\ntwo\nthree!"),
        (f"{'x' * 200}{PASTE.format('y' * 20_000)}\r", "x" * 200 + "y" * 20_000),
        (f"no no{CTRL_C}yes\r", "yes"),
        (f"kept{LEFT}{LEFT}{CTRL_D}\r", "ket"),
        (b"broken \xff byte\r", "broken � byte"),
    ],
    ids=["left", "home", "wide", "backslash", "alt-enter", "paste", "long", "ctrl-c", "ctrl-d", "bytes"],
)
def test_a_line_is_edited(read: Read, typed: str | bytes, message: str) -> None:
    assert read(typed) == [message]


def test_ctrl_c_on_an_empty_line_says_how_to_leave_and_ctrl_d_leaves(
    read: Read, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(CTRL_C + CTRL_D) == [None]
    assert "/quit or Ctrl-D leaves" in capsys.readouterr().err


# --- history


def test_what_was_said_is_there_at_the_next_start_and_only_for_its_user(read: Read) -> None:
    assert read("first\rof two\\\rlines\r", messages=2) == ["first", "of two\nlines"]
    assert stat.S_IMODE(history_file().stat().st_mode) == 0o600
    assert read(f"{UP}\r") == ["of two\nlines"]
    assert read(f"{UP}{UP}{UP}\r") == ["first"]
    assert read(f"{CTRL_R}fir\r\r") == ["first"]


def test_blank_first_and_repeated_lines_are_not_kept(read: Read) -> None:
    read("hello\r my password is swordfish\rhello\r", messages=3)
    assert history_file().read_text() == '"hello"\n'


def test_answers_and_edited_arguments_are_not_kept(keys: PipeInput, read: Read) -> None:
    async def whole() -> tuple[str, str | None]:
        keys.send_text("n swordfish\r")
        answered = await prompting.answer("› ")
        keys.send_text(f"{LEFT}1\r")
        return answered, await prompting.edited("› ", '{"a": 1}')

    assert read("hello\r") == ["hello"]
    assert asyncio.run(whole()) == ("n swordfish", '{"a": 11}')
    assert history_file().read_text() == '"hello"\n'


def test_the_file_is_cut_and_damage_in_it_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prompting, "MOST_BYTES", 1_000)
    monkeypatch.setattr(prompting, "MOST_LINES", 20)
    place = tmp_path / "history"
    place.write_bytes(b'\xff\xfe\n{"no": "text"}\n"good"\n')
    place.chmod(0o644)
    history = KeptHistory(place)
    assert list(history.load_history_strings()) == ["good"]
    for number in range(500):
        history.append_string(f"message {number}")
    assert place.stat().st_size <= 2_000
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert list(KeptHistory(place).load_history_strings())[:2] == ["message 499", "message 498"]
    assert len(list(KeptHistory(place).load_history_strings())) == 20


def test_where_no_history_can_be_kept_there_is_one_note(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    history_file().mkdir(parents=True)
    assert read("one\rtwo\r", messages=2) == ["one", "two"]
    assert capsys.readouterr().err.count("not kept for the next start") == 1


# --- commands


def completed(text: str) -> list[tuple[str, str]]:
    async def whole() -> list[tuple[str, str]]:
        found = CommandCompleter(COMMANDS, choices).get_completions_async(Document(text), CompleteEvent())
        return [(item.text, item.display_meta_text) async for item in found]

    return asyncio.run(whole())


def test_commands_and_what_they_take_are_completed() -> None:
    assert {name for name, _ in completed("/s")} == {"/session", "/sessions"}
    assert completed("/session mo") == [("monday", "Buy milk")]
    assert completed("/session t") == [("tuesday\x1b[2J", "Evil \\u001b[2J")]
    assert completed("hello /s") == completed("/nothing x") == completed("/help x") == []


def test_a_path_is_no_command() -> None:
    assert parsed("/tools count_boxes ") == ("/tools", "count_boxes")
    assert parsed("/etc/hosts is what?") is parsed("say /help") is parsed("/help\nme") is None
    assert unknown("/sesion").endswith("did you mean /session?")


# --- questions


def test_what_was_typed_or_pasted_ahead_is_no_answer(keys: PipeInput) -> None:
    async def whole() -> tuple[str | None, str]:
        keys.send_text("Delete it\ry\r")  # at once, as a terminal without bracketed paste hands it over
        message = await ChatPrompt(COMMANDS, choices).read()
        asking = asyncio.create_task(prompting.answer("› "))
        for _ in range(20):  # the answer would have been taken by now
            await asyncio.sleep(0)
        keys.send_text("n\r")
        return message, await asking

    assert asyncio.run(whole()) == ("Delete it", "n")


@pytest.mark.parametrize("typed", [CTRL_C, f"{BACKSPACE * 2}\r", f"{BACKSPACE * 2}{CTRL_D}"])
def test_an_edit_is_given_up(keys: PipeInput, typed: str) -> None:
    async def whole() -> str | None:
        keys.send_text(typed)
        return await prompting.edited("› ", "{}")

    assert asyncio.run(whole()) is None


def test_what_a_terminal_would_obey_is_shown_as_its_escape() -> None:
    text = "a\u202eb\x1bc"
    found = prompting.Escapes().apply_transformation(_line(text))
    assert "".join(fragment[1] for fragment in found.fragments) == "a\\u202eb\\u001bc"
    assert [found.source_to_display(at) for at in range(6)] == [0, 1, 7, 8, 14, 15]
    assert [found.display_to_source(at) for at in (0, 1, 7, 8, 14)] == [0, 1, 2, 3, 4]


def _line(text: str) -> TransformationInput:
    nothing: Any = None
    return TransformationInput(nothing, Document(text), 0, lambda at: at, [("", text)], 80, 24)


# --- what others print meanwhile


def test_lines_of_other_threads_are_written_whole_and_none_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    async def whole() -> None:
        with prompting.printed_above():
            await asyncio.to_thread(print, "from a tool \x1b[2J")
            print("half a line", end="")

    asyncio.run(whole())
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", "from a tool \\u001b[2J\nhalf a line")


@pytest.mark.slow
def test_only_a_terminal_loads_the_line_editor() -> None:
    program = "import sys, journeyman.doors.cli.chat; sys.exit('prompt_toolkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
