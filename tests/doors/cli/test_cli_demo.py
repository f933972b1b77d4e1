"""``journeyman demo`` and chat on the real engine, which both share: a log shows every promise kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.lazy import install_command
from journeyman.core.playbook import NEXT_STEP
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.doors.cli.demo import tour
from journeyman.doors.cli.program import program
from journeyman.models.embedded import EmbeddedModel
from journeyman.models.embedded.files import supported
from journeyman.testing import ScriptedModel, call, say
from tests.doors.cli.driving import Cli, Open, Piped, Serve
from tests.waiting import WAIT_SECONDS

on_the_engine = [
    pytest.mark.slow,
    pytest.mark.usefixtures("embedded_engine"),
    pytest.mark.timeout(1200),  # its threads wait for each other: minutes where other programs hold the cores
    pytest.mark.skipif(not supported(), reason="the embedded engine does not run on this machine"),
]


@pytest.mark.usefixtures("no_engine")
def test_without_its_model_the_demo_says_what_to_install(cli: Cli) -> None:
    ended = cli("demo", "--yes")
    assert (ended.code, ended.out) == (1, "")
    assert install_command("embedded") in ended.err


class Guide:
    """Knows the demo's sentences, and answers as the embedded model does: by calls, without prose."""

    name = "scripted"

    def __init__(self, *, learns: bool = True) -> None:
        self.learns = learns

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        asked = [message for message in request.messages if message.role == "user" and message.name is None]
        said = asked[-1].content
        shown = any(message.name == NEXT_STEP for message in request.messages)
        calls = {
            "quarterly report with": call("create_task", title="Prepare the quarterly report", priority="high"),
            "archive": call("create_task", title="Archive the old newsletter"),
            "Which": call("query_tasks", priority="high"),
            "Change": call("update_task", task_id="quarterly report", priority="critical"),
            "Delete": call("delete_task", task_id="newsletter"),
            "plants": call("create_task", title="Water the plants"),
        }
        if shown and self.learns:
            calls["electrician"] = call("create_task", title="Call the electrician")
        first = next((made for word, made in calls.items() if word in said), None)
        script: list[Any] = [first, ModelResponse(from_results=True)]
        if first is None:
            script = [say("I cannot do this.", confidence=0.1)]
        return await ScriptedModel(script).respond(request, deltas)


@pytest.mark.slow  # it starts and kills a process
class TestTheTour:
    @pytest.fixture(autouse=True)
    def guided(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tour(), "MODEL", Guide())

    def test_it_is_told_in_sentences_without_ids_and_nulls(self, cli: Cli) -> None:
        ended = cli("demo", "--yes")
        assert (ended.code, ended.err) == (0, "")
        expected = (
            "Added *Prepare the quarterly report*, high priority.",
            "1 task with high priority:",
            "Changed *Prepare the quarterly report*: priority high → critical.",
            "Deleted *Archive the old newsletter*.",
            "its call is done, its answer is not",
            "Added *Water the plants*.",
            "1 call, 1 attempt in all",
            "Added *Call the electrician*.",
            "Practice helped",
            "calls would be decided otherwise: 5 now asked.",
            " s in all",
        )
        assert [text for text in expected if text not in ended.out] == []
        assert re.findall(r"\b(?:task|run|appr|exec)_[0-9a-f]{6,}|\bnull\b|Do not repeat", ended.out) == []

    def test_it_says_so_where_practice_does_not_help(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tour(), "MODEL", Guide(learns=False))
        ended = cli("demo", "--yes")
        assert (ended.code, ended.err) == (0, "")
        assert "Practice did not help here" in ended.out
        assert "electrician*" not in ended.out

    def test_every_command_at_its_end_works_as_printed(self, cli: Cli, serve: Serve, tmp_path: Path) -> None:
        shown = cli("demo", "--yes").out.partition("Next, ")[2]
        commands = re.findall(r"^  (journeyman .+?)  # ", shown, re.MULTILINE)
        assert len(commands) == len(tour().NEXT)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with serve(call("create_task", title="Buy milk"), "Noted.") as server:
            variables = {"PATH": path, "JOURNEYMAN_MODEL": f"{server.url}#scripted", "OPENAI_API_KEY": "none"}
            for command in commands:
                self.must_work(command, {**os.environ, **variables}, tmp_path)

    @staticmethod
    def must_work(command: str, environment: dict[str, str], folder: Path) -> None:
        if not command.endswith(" serve"):
            given = {"shell": True, "cwd": folder, "env": environment, "stdin": subprocess.DEVNULL}
            ended = subprocess.run(command, timeout=WAIT_SECONDS, capture_output=True, text=True, **given)  # type: ignore[call-overload]
            assert ended.returncode == 0, f"{command}: {ended.stderr}"
            return
        # Which lasts until it is stopped; its port may be taken on the machine of a test.
        words = [*command.split(), "--port", "0"]
        with subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert "http://127.0.0.1:" in process.stderr.readline()
            process.terminate()


@pytest.mark.parametrize(
    ("argv", "on_path", "typed"),
    [
        ("{bin}/journeyman", False, "'a checkout/.venv/bin/journeyman'"),
        ("{bin}/journeyman", True, "journeyman"),
        ("/usr/bin/pytest", False, "journeyman"),
    ],
)
def test_commands_are_printed_as_this_program_was_started(
    argv: str, on_path: bool, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a checkout" / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "journeyman").touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [argv.format(bin=folder)])
    monkeypatch.setenv("PATH", str(folder if on_path else tmp_path))
    assert program() == typed


class TestOnTheEngine:
    pytestmark = on_the_engine

    @pytest.fixture(autouse=True)
    def in_its_own_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        defaults = EmbeddedModel.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "timeout", 1000.0)
        monkeypatch.setattr(tour(), "CHILD_SECONDS", 1000.0)

    def test_where_nobody_is_the_question_expires_and_the_demo_ends_well(
        self, cli: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
        monkeypatch.setenv("JOURNEYMAN_MODEL", "ollama:somebody-else")
        ended = cli("demo")
        assert (ended.code, ended.err) == (0, "")
        expected = (
            "✓ create_task",
            "✓ query_tasks",
            "✓ update_task",
            "? Delete the task “Archive the old newsletter” (pending) · delete_task",
            "nobody answered in time: denied",
            "Gap report  missing: book flight",
            "is killed: its call is done, its answer is not",
            "1 call, 1 attempt in all",
            '✓ create_task(title="electrician"',
            "Practice helped: alone the model did not serve this request, after one example it does.",
            "answered by embedded",
        )
        assert [text for text in expected if text not in ended.out] == []
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", ended.out)

    def test_in_chat_what_no_tool_can_do_is_told_and_kept(self, cli: Cli, piped: Piped, tmp_path: Path) -> None:
        store = ("--store", f"sqlite:///{tmp_path / 'kept.db'}")
        ended = piped("Book me a flight to Paris\nCreate a task to buy milk\n", "--model", "embedded", *store)
        assert ended.code == 0, ended.err
        assert "no tool for: book flight" in ended.err
        assert "✓ create_task" in ended.err
        [gap] = json.loads(cli("gaps", "list", "--json", *store).out)
        assert gap["report"]["attempted_task"] == "Book me a flight to Paris"

    @pytest.mark.nightly
    def test_in_a_terminal_the_person_is_asked(self, terminal: Open) -> None:
        program = terminal("demo")
        program.answer("y\n", patience=600)
        assert program.end(patience=600) == 0
        assert "✓ delete_task" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", program.shown)
