"""No text from outside makes a terminal do anything, whichever command shows it in whichever field."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.core.protocols import ModelResponse
from journeyman.doors.cli import screen
from journeyman.testing import call, raw, say, together
from tests.doors.cli.box_shop import NOISY, PROGRAM, printing_environment
from tests.doors.cli.driving import Cli, Ended, Open, Piped, Serve
from tests.waiting import WAIT_SECONDS

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x90q\x9c\u202egnp\u2066.\x7f\r\x08"
NAME = "burn\x9b31m\u202e"
SOURCE = f"""
from journeyman import Agent, RiskLevel, ToolContext, ToolError, ToolLibrary, tool

EVIL = {EVIL!r}

@tool(name={NAME!r}, description=EVIL + " Use when asked. More.", risk=RiskLevel.IRREVERSIBLE, tags=(EVIL,))
def burn(shelf: str) -> str:
    return EVIL

@tool(read_only=True, description=EVIL)
def look(shelf: str, *, context: ToolContext) -> dict[str, str]:
    print(EVIL)
    context.progress(EVIL, 0.5)
    return {{EVIL: EVIL}}

@tool(read_only=True, description=EVIL, isolation="process")
def apart(shelf: str) -> str:
    import os, sys
    print("said apart", EVIL)
    print(EVIL, file=sys.stderr)
    os.write(1, b"below \\xff" + EVIL.encode())
    return "done"

@tool(read_only=True, description=EVIL)
def fail(shelf: str) -> str:
    raise ToolError(EVIL, EVIL, recover_action=EVIL, user_guidance=EVIL)

@tool(read_only=True, description=EVIL)
def crash(shelf: str) -> str:
    raise ValueError(EVIL)

library = ToolLibrary([burn, look, apart, fail, crash])
agent = Agent(name="keeper" + EVIL, description=EVIL, instruction=EVIL, tools=(burn, look, apart, fail, crash))
"""
AGENT = ("--agent", "evilshop:agent")
SESSION = "s; touch owned \x1b[2J"


def harmless(ended: Ended) -> Ended:
    for written in (ended.out, ended.err):
        obeyed = [c for c in written if (not c.isprintable() and c not in "\n\t")]
        assert obeyed == [], written
    return ended


@pytest.fixture(autouse=True)
def evil_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evilshop.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def everything() -> ModelResponse:
    """A turn that calls every tool, and some that are not there."""
    calls = together(
        call("look", shelf=EVIL).with_id(EVIL),
        call("apart", shelf=EVIL),
        call("fail", shelf=EVIL).with_id("x; touch owned"),
        call("crash", shelf=EVIL),
        call(f"missing{EVIL}", shelf=EVIL),
        call("look", **{EVIL: EVIL}),
        call("look").raw(EVIL),
        call(NAME, shelf=EVIL).with_id(EVIL),
    )
    return calls.model_copy(update={"text": f"Thinking {EVIL}"})


@pytest.mark.parametrize("more", [(), ("--json",), ("--log-level", "debug")])
def test_a_run(cli: Cli, serve: Serve, more: tuple[str, ...]) -> None:
    with serve(everything(), say(f"Done {EVIL}")) as server:
        ended = harmless(cli("run", f"Do {EVIL}", *AGENT, "--yes", "--model", f"{server.url}#any{EVIL}", *more))
    assert ended.code == 0, ended.err
    assert "\\u001b[2J" in ended.out


@pytest.mark.slow
@pytest.mark.parametrize("buffered", [True, False])
def test_whatever_tools_print_and_however_late_the_answer_stays_whole(
    serve: Serve, tmp_path: Path, buffered: bool
) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    options = ("--agent", "noisy:agent", "--json")
    with serve(together(call("shout"), call("shout_apart")), say("Done.")) as server:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, "run", "Shout.", *options, "--model", f"{server.url}#any"],
            env=printing_environment(buffered=buffered),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=True,
        )
    assert json.loads(ended.stdout)["answer"] == "Done."
    harmless(Ended(0, ended.stdout, ended.stderr))
    said = (
        "imported",
        "printed",
        "unfinished",
        "to the original",
        "to the descriptor",
        "from a child",
        "late",
        "at exit",
    )
    assert [text for text in said if text not in ended.stderr] == []


@pytest.mark.slow
def test_a_durable_run_and_everything_that_shows_it(cli: Cli, serve: Serve) -> None:
    with serve(everything(), say(f"Done {EVIL}")) as server:
        model = ("--model", f"{server.url}#any")
        waiting = harmless(cli("run", f"Do {EVIL}", "--session", SESSION, *AGENT, *model))
        assert waiting.code == 3, waiting.err
        [approval] = json.loads(harmless(cli("approvals", "list", "--json")).out)
        [run] = json.loads(harmless(cli("runs", "list", "--json")).out)
        shown = [
            ("runs", "list"), ("runs", "show", run["id"]), ("runs", "show", run["id"], "--events"),
            ("runs", "show", run["id"], "--json"), ("runs", "show", run["id"], "--events", "--json"),
            ("runs", "export", run["id"]), ("approvals", "list"), ("approvals", "list", "--all"),
            ("approvals", "show", approval["id"]), ("approvals", "show", approval["id"], "--json"),
            ("audit", "list"), ("audit", "list", "--json"),
        ]  # fmt: skip
        for arguments in shown:
            assert harmless(cli(*arguments)).code == 0, arguments
        assert approval["call_id"] == "call_1_8"
        by = ("--by", f"ada{EVIL}")
        assert harmless(cli("approvals", "approve", approval["id"], "--for-session", *by)).code == 0
        assert harmless(cli("approvals", "deny", approval["id"], "--reason", EVIL, *by)).code == 1
        harmless(cli("approvals", "grants"))
        harmless(cli("approvals", "grants", "--json"))
        done = harmless(cli("runs", "resume", run["id"], "--library", "evilshop"))
    assert done.code == 0, done.err
    for arguments in [*shown, ("audit", "verify")]:
        assert harmless(cli(*arguments)).code == 0, arguments


@pytest.mark.slow
def test_tools_and_gaps(cli: Cli) -> None:
    library = ("--library", "evilshop")
    for arguments in (
        ("tools", "list"), ("tools", "list", "--json"), ("tools", "lint"), ("tools", "lint", "--json"),
        ("tools", "show", NAME), ("tools", "show", NAME, "--json"), ("tools", "export", "--json"), ("tools", "export"),
    ):  # fmt: skip
        harmless(cli(*arguments, *library))
    for name in ("look", "apart", "fail", "crash", NAME):
        given = ("--args", json.dumps({"shelf": EVIL}), "--yes")
        harmless(cli("tools", "call", name, *given, *library))
        harmless(cli("tools", "call", name, *given, *library, "--json"))
    harmless(cli("gaps", "detect", f"fetch the weather {EVIL}", *library))
    harmless(cli("gaps", "list"))
    harmless(cli("gaps", "list", "--json"))


def test_a_conversation(piped: Piped, serve: Serve) -> None:
    with serve(say(f"Hello {EVIL}")) as server:
        ended = harmless(piped(f"Hi {EVIL}\n", *AGENT, "--model", f"{server.url}#any", "--session", SESSION))
    assert "Hello" in ended.out


def test_errors(cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_LOG", "debug")
    with serve(raw(f"<title>{EVIL}</title>".encode(), status=404, content_type="text/html")) as server:
        ended = harmless(cli("run", "Do it.", *AGENT, "--model", f"{server.url}#any"))
    assert ended.code == 1
    assert "\\u001b[2J" in ended.err
    for arguments in (("runs", "show", EVIL), ("approvals", "show", EVIL), ("tools", "show", EVIL)):
        assert harmless(cli(*arguments)).code != 0
    harmless(cli("run", "x", "--agent", f"no{EVIL}:agent"))


@pytest.mark.slow
def test_on_a_terminal(terminal: Open, serve: Serve) -> None:
    with serve(everything(), say(f"Done {EVIL}")) as server:
        program = terminal("run", f"Do {EVIL}", *AGENT, "--yes", "--model", f"{server.url}#any")
        assert program.end() == 0
    assert "Done" in program.shown
    assert "said apart" in program.shown
    assert "below" in program.shown
    for obeyed in ("\x1b[2J", "\x1b]0;", "\x07", "\x9b", "\x90", "\u202e", "\u2066", "\x08"):
        assert obeyed not in program.shown


def test_commands_to_paste_are_quoted() -> None:
    from journeyman.doors.cli.loading import command

    evil = "x; touch owned"
    typed = command("sqlite:///a b.db", "runs resolve", evil, evil, "rerun")
    assert typed == "journeyman runs resolve 'x; touch owned' 'x; touch owned' rerun --store 'sqlite:///a b.db'"
    resume = shlex.split(command("sqlite:///a b.db", "runs resume", evil, "--library", evil))
    assert resume == ["journeyman", "runs", "resume", evil, "--library", evil, "--store", "sqlite:///a b.db"]


def test_joiners_in_words_reach_a_pipe_and_controls_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    screen.write("a\u200db \x1b[2J\u202e\x9b c\td")
    assert capsys.readouterr().out == "a\u200db \\u001b[2J\\u202e\\u009b c\td\n"
