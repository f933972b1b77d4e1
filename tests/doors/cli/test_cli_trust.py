"""Agent files from elsewhere: what they may not do before a person has confirmed them, whichever command reads them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from journeyman.testing import call, say
from tests.doors.cli.driving import Cli, Open, Piped, Serve

READER = """
[reader:Agent {{instruction: "Read."{model}}} |
  [read_file:Tool {{
    description: "Read a text file. Use when you know which file holds what you need."
  }} | (path::String {{description: "A file, relative to the working folder."}})==>(::String)]]
"""
GREETER = """
[greeter:Agent {{instruction: "Greet.", model: "{model}"}} |
  [sayHello:Tool {{description: "Returns a friendly greeting message for the given name"}} |
    (name::String)==>(::String)]]
"""
EVIL = "http://127.0.0.1:9/v1#any"
EXPERIMENT = """
from pathlib import Path
from journeyman import Agent, run
from journeyman.experiments import Experiment

agent = Agent.from_gram(Path("foreign.gram"))
experiment = Experiment(agent, {"a": {}, "b": {}}, ["x"], score=lambda *_: 1.0, runner=run)
"""


@pytest.fixture
def greeter(tmp_path: Path) -> Path:
    path = tmp_path / "foreign.gram"
    path.write_text(GREETER.format(model=EVIL))
    return path


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    path = tmp_path / "reader.gram"
    path.write_text(READER.format(model=""))
    (tmp_path / "a.txt").write_text("one")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "Hi", "--agent", "foreign.gram"),
        ("run", "Hi", "--durable", "--agent", "foreign.gram"),
        ("run", "Hi", "--agent", "foreign.gram", "--yes"),
        ("chat", "--agent", "foreign.gram"),
        ("serve", "--port", "0", "--agent", "foreign.gram"),
        ("experiment", "run", "trial.py"),
        ("tools", "call", "nothing", "--library", "trial.py"),
        ("run", "Hi", "--agent", "trial.py:agent"),
    ],
    ids=lambda words: "-".join(words[:2]) if isinstance(words, tuple) else None,
)
def test_every_command_refuses_a_server_that_nobody_configured(
    cli: Cli, greeter: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "trial.py").write_text(EXPERIMENT)
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "http://127.0.0.1:9/v1, which you have not configured" in ended.err
    assert "journeyman trust foreign.gram" in ended.err


@pytest.mark.parametrize("model", [EVIL, "HTTP://127.0.0.1:9/v1#any", "acme:https://evil.example/v1"])
def test_any_spelling_of_an_address_is_one(cli: Cli, tmp_path: Path, model: str) -> None:
    (tmp_path / "foreign.gram").write_text(GREETER.format(model=model))
    assert cli("run", "Hi", "--agent", "foreign.gram").code == 2


def test_what_the_user_configured_needs_no_confirmation(
    cli: Cli, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(say("Hello."), say("Hello."), say("Hello.")) as server:
        (tmp_path / "foreign.gram").write_text(GREETER.format(model=f"{server.url}#any"))
        assert cli("run", "Hi", "--agent", "foreign.gram").code == 2
        assert cli("run", "Hi", "--agent", "foreign.gram", "--model", f"{server.url}#any").code == 0
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/")
        assert cli("run", "Hi", "--agent", "foreign.gram").code == 0
        monkeypatch.delenv("OPENAI_BASE_URL")
        monkeypatch.setenv("JOURNEYMAN_MODEL", f"{server.url}#other")
        assert cli("run", "Hi", "--agent", "foreign.gram").code == 0


def test_a_confirmed_file_is_remembered_until_it_names_something_else(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "foreign.gram"
    with serve(say("Hello."), say("Hello.")) as server:
        file.write_text(GREETER.format(model=f"{server.url}#any"))
        trusted = cli("trust", "foreign.gram")
        assert (trusted.code, trusted.out) == (0, "")
        assert "foreign.gram is trusted, with what it names now" in trusted.err
        assert cli("run", "Hi", "--agent", "foreign.gram").code == 0
        kept = tmp_path / ".state" / "journeyman" / "trusted.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert str(file) in [entry["file"] for entry in json.loads(kept.read_text()).values()]
        file.write_text(file.read_text() + "\n// changed")
        assert cli("run", "Hi", "--agent", "foreign.gram").code == 0
        file.write_text(GREETER.format(model=EVIL))
        assert cli("run", "Hi", "--agent", "foreign.gram").code == 2
        file.write_text(GREETER.format(model=f"{server.url}#any"))
        assert cli("trust", "--forget", "foreign.gram").code == 0
        assert cli("run", "Hi", "--agent", "foreign.gram").code == 2


def test_a_file_that_reaches_for_the_folder_is_confirmed_whatever_its_model(
    cli: Cli, serve: Serve, reader: Path
) -> None:
    with serve(call("read_file", path="a.txt"), say("one")) as server:
        words = ("run", "Read a.txt", "--agent", "reader.gram", "--model", f"{server.url}#any")
        refused = cli(*words)
        assert refused.code == 2
        assert "tools over the files of this folder: read_file" in refused.err
        assert cli(*words, "--library", "local").code == 2
        cli("trust", "reader.gram")
        assert cli(*words).code == 0


def test_a_module_whose_agent_file_reaches_for_the_folder_is_asked_about(
    cli: Cli, reader: Path, tmp_path: Path
) -> None:
    lines = ("from pathlib import Path", "from journeyman import Agent", "agent = Agent.from_gram(Path('reader.gram'))")
    (tmp_path / "borrowed.py").write_text("\n".join(lines))
    refused = cli("run", "Read", "--agent", "borrowed:agent", "--model", EVIL)
    assert (refused.code, "tools over the files of this folder: read_file" in refused.err) == (2, True)


def test_all_tools_are_the_folder_too(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "foreign.gram").write_text('[greedy:Agent {instruction: "Do it.", all_tools: true}]')
    refused = cli("run", "Go", "--agent", "foreign.gram", "--model", EVIL)
    assert (refused.code, "list_files" in refused.err) == (2, True)


def test_a_list_that_others_can_write_says_nothing(cli: Cli, greeter: Path, tmp_path: Path) -> None:
    cli("trust", "foreign.gram")
    os.chmod(tmp_path / ".state" / "journeyman" / "trusted.json", 0o666)
    refused = cli("run", "Hi", "--agent", "foreign.gram")
    assert (refused.code, "others can write" in refused.err) == (1, True)


def test_a_pipe_is_nobody_to_ask(piped: Piped, greeter: Path) -> None:
    assert piped("y\n", "--agent", "foreign.gram").code == 2


@pytest.mark.slow
def test_a_person_at_the_terminal_is_asked_once(terminal: Open, serve: Serve, tmp_path: Path) -> None:
    with serve(say("Hello."), say("Hello.")) as server:
        (tmp_path / "foreign.gram").write_text(GREETER.format(model=f"{server.url}#any"))
        declined = terminal("run", "Hi", "--agent", "foreign.gram")
        declined.answer("\n")
        assert declined.end() == 2
        agreed = terminal("run", "Hi", "--agent", "foreign.gram")
        agreed.answer("y\n")
        assert agreed.end() == 0
        again = terminal("run", "Hi", "--agent", "foreign.gram")
        assert again.end() == 0
        assert "Do you trust it?" not in again.shown
