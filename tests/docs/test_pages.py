"""Every program and every command of every page, run in a fresh folder as a reader would run it.

What a page shows is all there is: programs are whole and start in a process of their own, files are those the page
tells the reader to save, commands are typed into one terminal in the page's order and must print what the page says. A
command may fail only where the page goes on with `echo $?`. What cannot run in a test (it needs root, a network, Docker
or a paid model) is named in `ELSEWHERE` with what is checked instead; how pages and terminals work is in `pages.py` and
`terminal.py`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from benchmarks.overhead.environments import python_of
from journeyman import gram
from journeyman.doors.cli.commands import COMMANDS, load_command
from journeyman.models.embedded.files import supported
from tests.docs.pages import PAGES, ROOT, Block, Command, blocks, commands, name_of
from tests.docs.terminal import STAYS, Terminal, matches
from tests.engine import with_an_engine
from tests.waiting import WAIT_SECONDS

ELSEWHERE = re.compile(
    r"pip |make |git |sudo |docker |systemctl |ollama |python -m venv |\. \.venv/|opentelemetry-|journeyman demo\b"
    r"|.*--model \"?(openai|ollama|anthropic|http|gguf):"
)
"""Commands that are not run here: `test_installing.py` installs, the demo has tests of its own, `test_deployment.py`
checks the files for other programs. Of all of them the extras, targets and options must exist."""
ASKS_A_MODEL = re.compile(r"journeyman (run|chat|serve|runs resume)\b")
NOT_FOR_RUNNING = ("", "text")
OTHER_FILES = ("dockerfile", "ini", "nginx", "caddyfile")
"""Checked by the tests of the pages that have them."""
COMMAND = re.compile(r"^(\$ )?(journeyman|python|pip|curl|make|docker|export) ", re.MULTILINE)
SYNOPSES = ("docs/command-line.md",)
"""Whose blocks without a language are grammars of options, compared with the program by `test_cli_reference.py`."""

WITH_FRAMEWORKS = ROOT / "docs" / "interop.md"
"""Read in `tests/interop`, where the other frameworks are installed."""
SHOWN = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)
"""A comment beside a `print` is a line that the program prints."""

ALL = [block for page in PAGES for block in blocks(page)]
RUN = [page for page in PAGES if blocks(page, "console", "python") and page != WITH_FRAMEWORKS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a reader begins: an empty folder, in which the examples' page finds the examples."""
    made = tmp_path / "reader"
    shutil.copytree(ROOT / "examples", made / "examples")
    return made


@pytest.fixture
def terminal(folder: Path, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(folder, tmp_path / "programs")
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_programs_and_commands_of_a_page_run(page: Path, terminal: Terminal) -> None:
    asks = any(ASKS_A_MODEL.search(session.text) for session in blocks(page, "console"))
    if asks and not supported():
        pytest.skip("the embedded engine is built for Linux x86-64")
    with with_an_engine() if asks else nullcontext():
        read(page, terminal)


def read(page: Path, terminal: Terminal) -> None:
    """Do what a reader does who follows the page from its beginning to its end."""
    whole = blocks(page, "console", "python")
    for block in blocks(page):
        if block.title is not None:
            (terminal.here / block.title).write_text(block.text, encoding="utf-8")
        started = block.title is not None and any(block.title in other.text for other in whole if other != block)
        if block.language == "python" and not started:
            program = block.title or "program.py"
            (terminal.here / program).write_text(block.text, encoding="utf-8")
            code, printed, _ = terminal.type(Command(f"{_python_for(block)} {program}", ""))
            assert code == 0, f"{block.place}: {printed}"
            for shown in SHOWN.findall(block.text):
                assert any(matches(line, shown) for line in printed.splitlines()), (
                    f"{block.place}: {shown!r}\n{printed}"
                )
        elif block.language == "console":
            type_all(block, terminal)


def _python_for(program: Block) -> str:
    """The interpreter of the framework that a program is written for, where ours does not have it beside itself."""
    return python_of("openai_agents") if "from agents import" in program.text else "python"


def type_all(session: Block, terminal: Terminal) -> None:
    typed = list(commands(session))
    for command, following in zip(typed, [*typed[1:], None], strict=True):
        if ELSEWHERE.match(command.text):
            continue
        code, printed, wanted = terminal.type(command)
        place = f"{session.place}: {command.text}"
        assert code == 0 or (following is not None and following.text == "echo $?"), f"{place}\n{printed}"
        assert not wanted or matches(printed, wanted), f"{place}\nprinted:\n{printed}\nthe page says:\n{wanted}"


def every_command() -> Iterator[tuple[str, str]]:
    for block in ALL:
        if block.language == "console":
            for command in commands(block):
                yield block.place, command.text.replace("\\\n", " ")


TYPED = list(every_command())


@pytest.mark.parametrize(
    ("place", "command"),
    [item for item in TYPED if ELSEWHERE.match(item[1])],
    ids=[t for p, t in TYPED if ELSEWHERE.match(t)],
)
def test_a_command_that_is_not_run_names_what_there_is(place: str, command: str) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for named in re.findall(r"(?:journeyman|\.|whl)\[([\w,]+)\]", command):
        assert set(named.split(",")) <= extras.keys(), place
    for target in re.findall(r"^make (\w+)", command):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), place
    assert_usage(command, place)


def assert_usage(text: str, place: str) -> None:
    """The program takes these options, whichever of its commands the text calls."""
    for call in re.findall(r"\bjourneyman ([a-z].*)", text):
        words = shlex.split(call, comments=True)
        if words[0] not in COMMANDS:
            continue
        command = load_command(words.pop(0))
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        command.make_context(call, words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_say_what_they_are(page: Path) -> None:
    """Nothing escapes the tests above by the way it is written."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        match block.language:
            case "python" | "console":
                pass
            case "json":
                json.loads(block.text)
            case "yaml":
                yaml.safe_load(block.text)
            case "toml":
                tomllib.loads(block.text)
            case "gram":
                gram.parse(block.text)
            case language if language in NOT_FOR_RUNNING:
                assert name_of(page) in SYNOPSES or not COMMAND.search(block.text), f"{block.place}: use `console`"
            case language:
                assert language in OTHER_FILES, f"{block.place}: nothing checks {language!r}"
        if block.title is not None:
            before = text.splitlines()[max(0, block.line - 8) : block.line - 1]
            assert f"`{block.title}`" in "\n".join(before), f"{block.place}: tell the reader to save it"


def test_our_program_is_not_longer_than_that_of_another_framework_for_the_same_job() -> None:
    page = blocks(ROOT / "docs" / "coming-from.md", "python")
    [ours] = [program for program in page if "ToolContext[Bank]" in program.text]
    for name in ("pydantic_ai", "agents"):
        [theirs] = [program for program in page if f"from {name} import" in program.text]
        assert all(part in theirs.text for part in ("class Bank", "class Answer", "def balance", "# account='A-1'"))
        assert len(ours.text.splitlines()) <= len(theirs.text.splitlines()), name
        assert len(ours.text) <= len(theirs.text), name


def test_the_first_program_is_short_and_prints_what_the_page_says(tmp_path: Path) -> None:
    [program, *_] = blocks(ROOT / "README.md", "python")
    assert len(program.text.splitlines()) <= 15
    ended = subprocess.run(
        [sys.executable, "-c", program.text], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_SECONDS
    )
    assert ended.stdout.startswith("W-17 is shipped.\n1. Calls lookup_order.\n   lookup_order → success"), ended.stderr


# The tour needs the engine, and has tests of its own.
@pytest.mark.parametrize(
    "example", sorted({*(ROOT / "examples").glob("*.py")} - {ROOT / "examples/demo.py"}), ids=name_of
)
def test_an_example_runs(example: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", f"examples.{example.stem}"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    found = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8")) if "://" not in link]
    assert [link for link in found if not (page.parent / link).exists()] == []


def test_a_command_that_stays_is_told_from_one_that_ends() -> None:
    assert STAYS.match("JOURNEYMAN_TOKEN=$TOKEN journeyman serve --library shop.py")
    assert not STAYS.match("journeyman run 'serve'")
