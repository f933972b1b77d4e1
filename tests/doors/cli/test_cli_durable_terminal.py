"""Durable runs in a real terminal: questions are asked there, and may be answered elsewhere first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journeyman.testing import call, say, together
from tests.doors.cli.box_shop import AGENT, LIBRARY, effects, shop  # noqa: F401
from tests.doors.cli.driving import Cli, Open, Serve

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shop")]


def test_questions_of_a_durable_run_are_asked_in_the_terminal(serve: Serve, terminal: Open, tmp_path: Path) -> None:
    with serve(together(call("burn_shelf", shelf="a"), call("burn_shelf", shelf="b")), say("All warm.")) as server:
        program = terminal("run", "Burn.", "--durable", *AGENT, "--model", f"{server.url}#any")
        program.answer("y\n")
        program.answer("e\n")
        program.answer('{"shelf": "c"}\n')
        assert program.end() == 0
    assert "All warm." in program.shown
    assert sorted(effects(tmp_path)) == ["burnt a", "burnt c"]


def test_a_question_that_was_left_open_is_asked_when_the_run_is_taken_up(
    cli: Cli, serve: Serve, terminal: Open, tmp_path: Path
) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Not burnt.")) as server:
        assert cli("run", "Burn.", "--durable", *AGENT, "--model", f"{server.url}#any").code == 3
        [approval] = json.loads(cli("approvals", "list", "--json").out)
        program = terminal("runs", "resume", approval["run_id"], *LIBRARY)
        program.answer("n\n")
        assert program.end() == 0
    assert ("Not burnt." in program.shown, effects(tmp_path)) == (True, [])


def test_an_answer_from_elsewhere_ends_the_question(cli: Cli, serve: Serve, terminal: Open, tmp_path: Path) -> None:
    with serve(call("burn_shelf", shelf="a"), say("Warm.")) as server:
        program = terminal("run", "Burn.", "--durable", *AGENT, "--model", f"{server.url}#any")
        program.answer("")
        [approval] = json.loads(cli("approvals", "list", "--json").out)
        assert cli("approvals", "approve", approval["id"], "--by", "grace").code == 0
        assert program.end() == 0
    assert ("approved by grace" in program.shown, effects(tmp_path)) == (True, ["burnt a"])
