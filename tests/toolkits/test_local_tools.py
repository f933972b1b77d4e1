"""The tools over a folder: what they do, and what they refuse."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from journeyman import ToolContext, ToolError, ToolLibrary
from journeyman.core.approvals import Approve
from journeyman.testing import call
from journeyman.toolkits.local import LocalTools
from tests.execution.pathway import Answers
from tests.execution.pathway import Path as Way


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one\nTwo\nthree\n")
    (root / "deep" / "b.txt").write_text("two again\n")
    (root / ".env").write_text("TOKEN=two\n")
    (root / "server.pem").write_text("two\n")
    (root / "picture.bin").write_bytes(b"two\xff\xfe")
    (tmp_path / "outside.txt").write_text("two, out of reach\n")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    return root


@pytest.fixture
def tools(folder: Path) -> LocalTools:
    return LocalTools(folder, notes=folder / "notes")


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(ToolError) as error:
        call(*arguments)
    assert error.value.recover_action
    return error.value.code


def test_files_are_listed_without_hidden_ones_and_links(tools: LocalTools) -> None:
    found = tools.list_files()
    assert [item["path"] for item in found["files"]] == ["a.txt", "picture.bin", "server.pem", "deep/b.txt"]
    assert found["complete"]
    assert [item["path"] for item in tools.list_files("deep")["files"]] == ["deep/b.txt"]


def test_a_search_finds_lines_and_leaves_secrets_alone(tools: LocalTools) -> None:
    found = tools.search_text("TWO", context=ToolContext())
    assert [(item["path"], item["line"]) for item in found["lines"]] == [("a.txt", 2), ("deep/b.txt", 1)]
    assert (found["skipped"], found["complete"]) == (3, True)  # .env, server.pem, link.txt
    first = tools.search_text("two", limit=1, context=ToolContext())
    assert (len(first["lines"]), first["complete"]) == (1, False)


def test_a_search_that_was_given_up_stops(tools: LocalTools) -> None:
    context = ToolContext()
    context.cancel()
    assert tools.search_text("two", context=context)["lines"] == []


def test_a_text_file_is_read_and_nothing_else(tools: LocalTools, folder: Path) -> None:
    assert tools.read_file("a.txt") == "one\nTwo\nthree\n"
    assert refused(tools.read_file, "picture.bin") == "NOT_TEXT"
    assert refused(tools.read_file, "missing.txt") == "NOT_FOUND"
    assert refused(tools.read_file, "deep") == "NOT_FOUND"
    (folder / "large.txt").write_text("x" * 1_000_001)
    assert refused(tools.read_file, "large.txt") == "NOT_TEXT"
    os.mkfifo(folder / "pipe")
    assert refused(tools.read_file, "pipe") == "NOT_FOUND"


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", "deep/../../outside.txt", "link.txt"])
def test_nothing_outside_the_folder_is_reached(tools: LocalTools, path: str) -> None:
    assert refused(tools.read_file, path) == "OUTSIDE_FOLDER"
    assert refused(tools.list_files, path) == "OUTSIDE_FOLDER"


def test_a_path_that_is_none_is_refused(tools: LocalTools) -> None:
    assert refused(tools.read_file, "a\0b") == "NOT_FOUND"


def test_the_time_is_told_in_a_time_zone(tools: LocalTools) -> None:
    told = datetime.fromisoformat(tools.get_current_time("UTC")["time"])
    assert abs(datetime.now(told.tzinfo) - told) < timedelta(minutes=1)
    assert refused(tools.get_current_time, "Middle/Earth") == "UNKNOWN_TIMEZONE"
    assert refused(tools.get_current_time, "../etc/passwd") == "UNKNOWN_TIMEZONE"


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1 + 2 * 3", 7), ("(1 + 2) * -3", -9), ("7 // 2 + 7 % 2", 4), ("2 ** 10", 1024), ("1 / 4", 0.25), (" 5 ", 5)],
)
def test_arithmetic_is_worked_out(tools: LocalTools, expression: str, value: float) -> None:
    assert tools.calculate_expression(expression) == value


@pytest.mark.parametrize(
    "expression",
    ["9 ** 9 ** 9", "1 / 0", "(-8) ** 0.5", "1e308 * 10", "__import__('os')", "x", "'a' * 9", "1 +", "True", "1 < 2"],
)
def test_what_is_no_arithmetic_or_too_large_is_refused(tools: LocalTools, expression: str) -> None:
    assert refused(tools.calculate_expression, expression) == "NOT_ARITHMETIC"


def test_a_note_is_kept_never_overwritten_and_deleted_for_good(tools: LocalTools, folder: Path) -> None:
    assert tools.write_note("weekly orders", "157.40") == {
        "title": "weekly orders",
        "path": "notes/weekly orders.md",
    }
    assert refused(tools.write_note, "weekly orders", "other") == "NOTE_EXISTS"
    assert (folder / "notes" / "weekly orders.md").read_text() == "157.40"
    assert tools.delete_note("weekly orders") == {"deleted": "weekly orders"}
    assert refused(tools.delete_note, "weekly orders") == "NOT_FOUND"


@pytest.mark.parametrize("title", ["../a", "a/b", ".hidden", "a\nb", " "])
def test_a_title_that_is_no_file_name_is_refused(tools: LocalTools, title: str) -> None:
    assert refused(tools.write_note, title, "text") == "INVALID_TITLE"
    assert refused(tools.delete_note, title) == "INVALID_TITLE"


def test_only_deleting_is_irreversible(tools: LocalTools) -> None:
    library = ToolLibrary(tools.tools())
    assert [item.name for item in library.specifications() if item.risk == "irreversible"] == ["delete_note"]
    assert [item.name for item in library.specifications() if not item.read_only] == ["write_note", "delete_note"]


# --- hidden files and credentials


@pytest.fixture
def protected(folder: Path) -> Path:
    """Files that nobody should read unasked, and links to them under innocent names."""
    for name in (".hidden", "deep/.ssh/config", ".aws/credentials", "passwords.txt", "deep/id_ed25519", "login.kdbx"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("two secrets\n")
    (folder / "notes.txt").symlink_to(folder / ".hidden")
    (folder / "help").symlink_to(folder / "deep" / ".ssh")
    os.link(folder / ".env", folder / "readme.txt")
    return folder


PROTECTED = [
    ".env",
    ".hidden",
    "./.hidden",
    "deep/../.hidden",
    "deep/.ssh/config",
    ".aws/credentials",
    "passwords.txt",
    "deep/id_ed25519",
    "login.kdbx",
    "server.pem",
    "notes.txt",
    "help/config",
    "readme.txt",
]


@pytest.mark.parametrize("path", PROTECTED)
async def test_what_is_hidden_or_a_credential_is_read_only_where_a_person_agrees(
    tools: LocalTools, protected: Path, path: str
) -> None:
    record = await Way([tools.read_file]).call(call("read_file", path=path))
    assert (record.risk, record.status) == ("irreversible", "denied")
    gate = Answers(Approve())
    allowed = await Way([tools.read_file], gate=gate).call(call("read_file", path=path))
    assert allowed.status == "success"
    assert gate.questions[0].risk_raised  # so that no standing grant covers it


@pytest.mark.parametrize("folder_name", [".aws", "deep/.ssh", "help"])
async def test_a_hidden_folder_is_neither_listed_nor_searched_unasked(
    tools: LocalTools, protected: Path, folder_name: str
) -> None:
    way = Way([tools.list_files, tools.search_text])
    for asked in (call("list_files", folder=folder_name), call("search_text", text="two", folder=folder_name)):
        assert (await way.call(asked)).status == "denied"


def test_a_search_skips_what_is_protected_and_says_how_much(tools: LocalTools, protected: Path) -> None:
    found = tools.search_text("two", context=ToolContext())
    assert [item["path"] for item in found["lines"]] == ["a.txt", "deep/b.txt"]
    assert found["skipped"] == 12


def test_a_link_that_changes_after_the_grading_is_refused_by_the_tool(tools: LocalTools, protected: Path) -> None:
    for name in PROTECTED:
        assert refused(tools.read_file, name) == "PROTECTED_FILE"
    assert refused(tools.list_files, ".aws") == "PROTECTED_FILE"


async def test_ordinary_files_are_read_unasked(tools: LocalTools) -> None:
    assert (await Way([tools.read_file]).call(call("read_file", path="deep/b.txt"))).result == "two again\n"


@pytest.mark.parametrize("when", ["_inside", "_check_allowed"])
@pytest.mark.parametrize("swapped", ["deep", "deep/b.txt"])
def test_a_link_that_is_put_in_place_after_the_look_is_not_followed(
    tools: LocalTools, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, swapped: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "b.txt").write_text("two, out of reach\n")
    original = getattr(tools, when)

    def swap(*given: Any, **named: Any) -> Any:
        looked_at = original(*given, **named)
        place = folder / swapped
        if not place.is_symlink():
            place.rename(tmp_path / "moved")
            place.symlink_to(tmp_path / "elsewhere" / ("b.txt" if swapped.endswith(".txt") else ""))
        return looked_at

    monkeypatch.setattr(tools, when, swap)
    told = [
        _said(lambda: tools.read_file("deep/b.txt")),
        _said(lambda: tools.search_text("two", folder="deep", context=ToolContext())),
        _said(lambda: tools.list_files("deep")),
    ]
    assert "out of reach" not in "".join(told)


def test_a_hard_link_that_is_put_in_place_after_the_look_is_not_read(
    tools: LocalTools, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = tools._check_allowed

    def swap(*given: Any, **named: Any) -> None:
        check(*given, **named)
        (folder / "a.txt").unlink()
        (folder / "a.txt").hardlink_to(folder / ".env")

    monkeypatch.setattr(tools, "_check_allowed", swap)
    assert "TOKEN" not in _said(lambda: tools.read_file("a.txt"))


def _said(ask: Callable[[], Any]) -> str:
    try:
        return str(ask())
    except ToolError as error:
        return str(error)
