"""Approvals in a real terminal: what is shown, what is asked, what each answer does, here or given elsewhere first."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from journeyman.testing import call, say, together
from tests.doors.cli.box_shop import AGENT, LIBRARY, effects
from tests.doors.cli.driving import Cli, Open, Serve

pytestmark = pytest.mark.slow


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "journeyman-notes"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(name)
    return folder


def left(notes: Path) -> list[str]:
    return sorted(path.name for path in notes.iterdir())


DELETE = ("tools", "call", "delete_note", "--library", "local", "--args", '{"title": "a"}')


def test_the_question_shows_the_exact_call_and_yes_runs_it(notes: Path, terminal: Open) -> None:
    program = terminal(*DELETE)
    program.answer("y\n")
    assert (program.end(), left(notes)) == (0, ["b.md"])
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", program.shown)
    for expected in ("May this run?", "delete_note", "irreversible", '"title": "a"'):
        assert expected in plain


@pytest.mark.parametrize("keys", ["n not today\n", "\n", "\x04"], ids=["no", "enter", "end of input"])
def test_anything_but_yes_leaves_things_as_they_are(notes: Path, terminal: Open, keys: str) -> None:
    program = terminal(*DELETE)
    program.answer(keys)
    assert (program.end(), left(notes)) == (1, ["a.md", "b.md"])
    assert keys.startswith("n") == ("was not allowed: not today." in program.shown)


def test_the_arguments_are_there_to_be_edited_until_they_are_right(notes: Path, terminal: Open) -> None:
    program = terminal(*DELETE)

    def offers(text: str) -> None:
        program.wait_for(lambda: program.screen.text.endswith(f"\n  › {text}"))

    program.answer("what?\n")
    program.answer("e\n")
    offers('{"title": "a"}')
    program.type("\x03")  # back to the question
    program.answer("e\n")
    offers('{"title": "a"}')
    program.type("\x7f\n")
    program.wait_for("Not run: Expecting")
    offers('{"title": "a"')
    program.type(', "colour": 1}\n')
    program.wait_for("Not run: the edited arguments for 'delete_note' are not valid")
    offers('{"title": "a", "colour": 1}')
    program.type('\x15{"title": "b"}\n')
    assert (program.end(), left(notes)) == (0, ["a.md"])


def test_what_was_typed_before_the_question_is_no_answer(notes: Path, terminal: Open) -> None:
    program = terminal(*DELETE)
    program.type("y\n")
    time.sleep(0.1)  # the keys lie in the terminal's own buffer; nothing tells when they have arrived
    program.answer("n\n")
    assert (program.end(), left(notes)) == (1, ["a.md", "b.md"])


def test_ctrl_c_at_a_question_ends_the_program_and_runs_nothing(notes: Path, terminal: Open) -> None:
    program = terminal(*DELETE)
    program.answer("\x03")
    assert (program.end(), left(notes)) == (130, ["a.md", "b.md"])
    assert "Traceback" not in program.shown


def test_no_colour_is_used_where_nobody_wants_it(terminal: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    program = terminal("tools", "list")
    assert program.end() == 0
    assert coloured.search(program.shown)
    monkeypatch.setenv("NO_COLOR", "1")
    program = terminal("tools", "list")
    assert program.end() == 0
    assert "delete_task" in program.shown
    assert not coloured.search(program.shown)


# --- durable runs


@pytest.mark.usefixtures("shop")
def test_questions_of_a_durable_run_are_asked_in_the_terminal(serve: Serve, terminal: Open, tmp_path: Path) -> None:
    with serve(together(call("burn_shelf", shelf="a"), call("burn_shelf", shelf="b")), say("All warm.")) as server:
        program = terminal("run", "Burn.", "--durable", *AGENT, "--model", f"{server.url}#any")
        program.answer("y\n")
        program.answer("e\n")
        program.wait_for('  › {"shelf": "b"}')
        program.type('\x15{"shelf": "c"}\n')
        assert program.end() == 0
    assert "All warm." in program.shown
    assert sorted(effects(tmp_path)) == ["burnt a", "burnt c"]


@pytest.mark.usefixtures("shop")
def test_a_question_that_was_left_open_is_asked_when_the_run_is_taken_up(
    cli: Cli, serve: Serve, terminal: Open, tmp_path: Path
) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Not burnt.")) as server:
        assert cli("run", "Burn.", "--durable", *AGENT, "--model", f"{server.url}#any").code == 3
        [approval] = json.loads(cli("approvals", "list", "--json").out)
        program = terminal("runs", "resume", approval["run_id"], *LIBRARY)
        program.answer("n\n")
        assert program.end() == 1  # what was asked was not done
    assert ("Not burnt." in program.shown, effects(tmp_path)) == (True, [])


@pytest.mark.usefixtures("shop")
def test_an_answer_from_elsewhere_ends_the_question(cli: Cli, serve: Serve, terminal: Open, tmp_path: Path) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Warm.")) as server:
        program = terminal("run", "Burn.", "--durable", *AGENT, "--model", f"{server.url}#any")
        program.answer("")
        [approval] = json.loads(cli("approvals", "list", "--json").out)
        assert cli("approvals", "approve", approval["id"], "--by", "grace").code == 0
        assert program.end() == 0
    assert ("approved by grace" in program.shown, effects(tmp_path)) == (True, ["burnt a"])


ASKS = '''
from journeyman import ToolContext, ToolLibrary, tool


@tool(read_only=True)
async def order(context: ToolContext) -> str:
    """Order something. Use when the user wants something."""
    fields = {"size": {"type": "string", "enum": ["small", "large"]}, "count": {"type": "integer"}}
    return f"ordered {await context.ask('What shall it be?', {'type': 'object', 'properties': fields})}"


library = ToolLibrary([order])
'''


@pytest.mark.parametrize(
    ("size", "count", "told"), [("large", "3", "{'size': 'large', 'count': 3}"), ("", "", "ordered None")]
)
def test_a_tool_asks_whoever_sits_at_the_terminal(
    tmp_path: Path, terminal: Open, size: str, count: str, told: str
) -> None:
    (tmp_path / "asks.py").write_text(ASKS)
    program = terminal("tools", "call", "order", "--library", "asks:library", "--args", "{}")
    program.answer(f"{size}\n")
    assert "What shall it be?" in program.screen.text
    assert "size (small, large) ›" in program.screen.text
    program.answer(f"{count}\n")
    assert program.end() == 0
    assert told in program.shown
