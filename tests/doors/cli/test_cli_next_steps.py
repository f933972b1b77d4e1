"""What runs and sessions remember: every command that is printed as the next step works as printed, anywhere."""

from __future__ import annotations

import io
import json
import re
import shlex
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from journeyman.testing import call, say
from journeyman.tools import paths
from tests.doors.cli.box_shop import AGENT, effects
from tests.doors.cli.driving import Cli, Ended, Piped, Serve

Leave = Callable[[], Path]

HIDDEN = """
[reader:Agent {instruction: "Read."} |
  [read_file:Tool {
    description: "Read a text file. Use when you know which file holds what you need."
  } | (path::String {description: "A file, relative to the working folder."})==>(::String)]]
"""


@pytest.fixture
def leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Leave:
    """Go to another folder, in which nothing of this one is imported: as a new process would."""
    before = list(sys.path)

    def left() -> Path:
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
                del sys.modules[name]
        monkeypatch.setattr(sys, "path", list(before))
        monkeypatch.setattr(paths, "_folders", [])
        elsewhere = tmp_path / "else where"
        elsewhere.mkdir(exist_ok=True)
        monkeypatch.chdir(elsewhere)
        return elsewhere

    return left


@pytest.fixture
def store(tmp_path: Path) -> tuple[str, str]:
    return ("--store", f"sqlite:///{tmp_path / 'my runs.db'}")


def printed(ended: Ended) -> list[list[str]]:
    """The commands that a command has told to type next."""
    found = re.findall(r"journeyman ((?:approvals approve|runs resume|chat --session) .*)", ended.err + ended.out)
    return [shlex.split(command) for command in found]


def status_of(cli: Cli, store: tuple[str, str]) -> str:
    [row] = json.loads(cli("runs", "list", *store, "--json").out)
    return str(row["status"])


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    "named",
    [
        ("--agent", "boxshop:agent"),
        ("--agent", "./boxshop.py:agent"),
        ("--library", "boxshop"),
        ("--agent", "boxshop.py:agent", "--library", "boxshop.py:library"),
    ],
    ids=" ".join,
)
def test_each_printed_command_works_in_another_folder_without_more_options(
    cli: Cli, serve: Serve, leave: Leave, store: tuple[str, str], named: tuple[str, ...]
) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Warm.")) as server:
        waiting = cli("run", "Burn it.", *named, "--model", f"{server.url}#any", *store)
        assert waiting.code == 3, waiting.err
        elsewhere = leave()
        approve, resume = printed(waiting)
        assert len(resume) == len(["runs", "resume", "ID", *store])
        decided = cli(*approve)
        assert printed(decided) == [resume]
        done = cli(*resume)
    assert (done.code, done.out) == (0, "Warm.\n"), done.err
    assert effects(elsewhere) == ["burnt a"]


def test_an_agent_of_a_gram_file_goes_on_over_the_folder_it_began_in(
    cli: Cli, serve: Serve, leave: Leave, store: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "reader.gram").write_text(HIDDEN)
    (tmp_path / ".hidden").write_text("the word is plum")
    assert cli("trust", "reader.gram").code == 0
    with serve(call("read_file", path=".hidden"), say("Plum.")) as server:
        waiting = cli("run", "Read it.", "--agent", "reader.gram", "--model", f"{server.url}#any", *store)
        assert waiting.code == 3, waiting.err
        leave()
        (tmp_path / "reader.gram").unlink()  # what it said is kept with the run
        for command in printed(waiting):
            done = cli(*command)
        assert "the word is plum" in server.requests[1]["messages"][-1]["content"]
    assert (done.code, done.out) == (0, "Plum.\n")


@pytest.mark.usefixtures("shop")
def test_a_session_goes_on_with_its_agent_its_tools_and_its_model(
    cli: Cli, piped: Piped, serve: Serve, leave: Leave, store: tuple[str, str]
) -> None:
    def offered(request: dict[str, Any]) -> list[str]:
        return [item["function"]["name"] for item in request["tools"]]

    with serve(*(say(f"Answer {number}.") for number in range(4))) as server:
        model = ("--model", f"{server.url}#first")
        assert piped("Hi\n", "--session", "tuesday", *AGENT, *model, *store).code == 0
        leave()
        assert piped("And?\n", "--session", "tuesday", *store).out == "Answer 1.\n"
        leave()
        assert cli("run", "And now?", "--session", "tuesday", *store).out == "Answer 2.\n"
        assert piped("Hm\n", "--session", "tuesday", "--model", f"{server.url}#other", *store).code == 0
        assert [request["model"] for request in server.requests] == ["first", "first", "first", "other"]
        assert {tuple(offered(request)) for request in server.requests} == {("count_boxes", "burn_shelf", "ring_bell")}


# --- a store of somebody else's


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("way", ["resume", "resume all", "chat"])
def test_code_that_only_a_store_names_is_not_loaded(
    cli: Cli,
    piped: Piped,
    serve: Serve,
    leave: Leave,
    store: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    named = ("--agent", "boxshop.py:agent", "--session", "s")
    with serve(call("burn_shelf", shelf="a"), say("Warm.")) as server:
        waiting = cli("run", "Burn it.", *named, "--model", f"{server.url}#any", *store)
        approve, resume = printed(waiting)
        assert cli(*approve).code == 0
        elsewhere = leave()
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
        if way == "chat":
            refused = piped("Go on\n", "--session", "s", *store)
        else:
            refused = cli(*(resume if way == "resume" else ("runs", "resume", *store)))
        assert refused.code in (1, 2)
        assert "boxshop" not in sys.modules
        leave()
        option = f"--agent {shlex.quote(str(tmp_path / 'boxshop.py'))}:agent"
        assert f"name it yourself with {option}" in refused.err
        assert status_of(cli, store) == "running"
        done = cli(*resume, *shlex.split(option), "--model", f"{server.url}#any")
    assert (done.code, effects(elsewhere)) == (0, ["burnt a"])


@pytest.mark.usefixtures("shop")
def test_a_known_file_is_not_loaded_for_an_agent_that_the_store_has_changed(
    cli: Cli, serve: Serve, leave: Leave, store: tuple[str, str]
) -> None:
    with serve(call("burn_shelf", shelf="a")) as server:
        waiting = cli("run", "Burn it.", *AGENT, "--model", f"{server.url}#any", *store)
    approve, resume = printed(waiting)
    assert cli(*approve).code == 0
    leave()
    with closing(sqlite3.connect(store[1].removeprefix("sqlite:///"), isolation_level=None)) as database:
        database.execute("UPDATE runs SET asked = replace(asked, 'Keep the shelves.', 'Send all shelves to me.')")
    refused = cli(*resume)
    assert (refused.code, "boxshop" in sys.modules) == (1, False)


# --- what cannot be loaded


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "boxshop.py' is not there"),
        ("import not_there_at_all\n", "boxshop.py, line 1)"),
        ("x = 1\n", "names nothing"),
        ("from journeyman import Agent\nagent = Agent(name='keeper', instruction='x')\n", "burn_shelf: no implement"),
    ],
    ids=["file gone", "not importable", "agent gone", "tool gone"],
)
def test_a_run_that_cannot_be_bound_stays_as_it_is_and_says_why(
    cli: Cli, serve: Serve, leave: Leave, store: tuple[str, str], tmp_path: Path, text: str | None, told: str
) -> None:
    file, named = tmp_path / "boxshop.py", ("--agent", "boxshop.py:agent", "--session", "s")
    whole = file.read_text()
    with serve(call("burn_shelf", shelf="a"), say("Warm.")) as server:
        waiting = cli("run", "Burn it.", *named, "--model", f"{server.url}#any", *store)
        approve, resume = printed(waiting)
        assert cli(*approve).code == 0
        elsewhere = leave()
        file.unlink()
        if text is not None:
            file.write_text(text)
        for command in (resume, ["runs", "resume", *store]):
            refused = cli(*command)
            leave()
            assert refused.code == 1
            assert told in refused.err
            assert "stays as it is" in refused.err
            assert "Traceback" not in refused.err
        assert (status_of(cli, store), effects(elsewhere), len(server.requests)) == ("running", [], 1)
        file.write_text(whole)
        assert cli(*resume).code == 0
    assert effects(elsewhere) == ["burnt a"]


# --- questions that nobody answered in time


@pytest.mark.usefixtures("shop")
def test_after_its_time_a_question_is_no_reason_to_wait_in_any_listing(
    cli: Cli, serve: Serve, store: tuple[str, str]
) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Nobody answered.")) as server:
        waiting = cli("run", "Burn it.", *AGENT, "--model", f"{server.url}#any", *store)
        assert status_of(cli, store) == "awaiting_approval"
        with closing(sqlite3.connect(store[1].removeprefix("sqlite:///"), isolation_level=None)) as database:
            database.execute("UPDATE approvals SET expires_at = 1")
        run_id = printed(waiting)[1][2]
        assert status_of(cli, store) == "running"
        assert json.loads(cli("approvals", "list", *store, "--json").out) == []
        assert json.loads(cli("runs", "list", "--status", "awaiting_approval", *store, "--json").out) == []
        assert len(json.loads(cli("runs", "list", "--status", "running", *store, "--json").out)) == 1
        shown = cli("runs", "show", run_id, *store)
        assert ("awaiting_approval" in shown.out, printed(shown)) == (False, [["runs", "resume", run_id, *store]])
        assert cli("runs", "resume", run_id, *store).code == 1  # nothing was done


# --- exit codes


@pytest.mark.usefixtures("shop")
def test_the_exit_code_is_the_same_by_every_way_to_ask(cli: Cli, piped: Piped, serve: Serve) -> None:
    for name, arguments, code in (("ring_bell", '{"times": "often"}', 1), ("count_boxes", '{"shelf": "a"}', 0)):
        assert cli("tools", "call", name, "--args", arguments, "--library", "boxshop").code == code
    assert cli("tools", "call", "burn_shelf", "--library", "boxshop", "--json").code == 1
    failing = (call("ring_bell", times="often"), say("It did not ring."))
    with serve(*failing * 3, call("burn_shelf", shelf="a"), call("count_boxes", shelf="a"), say("Three.")) as server:
        options = (*AGENT, "--model", f"{server.url}#any")
        direct = cli("run", "Ring.", *options, "--json")
        response = json.loads(direct.out)
        assert (direct.code, response["status"], response["outcome"]) == (1, "completed", "not")
        assert cli("run", "Ring.", *options, "--durable").code == 1
        assert piped("Ring.\n", *options).code == 1
        assert piped("Burn.\n", *options).code == 3
        assert piped("Count.\n", *options).code == 0
