"""Memory from the command line: kept, imported, found, listed and forgotten, each person's own."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from journeyman.testing import call
from tests.doors.cli.driving import Cli, Serve

pytestmark = pytest.mark.slow  # each command is a process, or loads an embedder


def kept(cli: Cli, text: str, *options: str) -> str:
    ended = cli("memory", "add", text, "--json", *options)
    assert ended.code == 0, ended.err
    found: str = json.loads(ended.out)["id"]
    return found


def test_a_document_is_added_found_listed_and_deleted(cli: Cli) -> None:
    said = cli("memory", "add", "The dentist moved to Thursday.", "--metadata", '{"topic": "health"}')
    assert (said.code, said.out.startswith("kept as mem")) == (0, True)
    other = kept(cli, "Order W-17 was sent on Monday.")
    found = cli("memory", "search", "Where is W-17?", "--limit", "1")
    assert (found.code, other in found.out, "Order W-17 was sent" in found.out) == (0, True, True)
    assert "stored" in found.out
    [health] = json.loads(cli("memory", "list", "--metadata", '{"topic": "health"}', "--json").out)
    assert health["text"].startswith("The dentist")
    assert len(json.loads(cli("memory", "list", "--since", "1h", "--json").out)) == 2
    assert json.loads(cli("memory", "list", "--until", "1h", "--json").out) == []
    gone = cli("memory", "delete", other)
    assert (gone.code, gone.out) == (0, "1 document forgotten\n")
    again = cli("memory", "delete", other)
    assert (again.code, "memory list" in again.err) == (1, True)
    assert other not in cli("memory", "search", "W-17").out


def test_each_principal_has_their_own(cli: Cli) -> None:
    mine, theirs = kept(cli, "my plan"), kept(cli, "a plan of bob's", "--principal", "bob")
    assert mine in cli("memory", "list").out
    assert theirs not in cli("memory", "list").out
    assert theirs not in cli("memory", "search", "plan").out
    assert theirs in cli("memory", "search", "plan", "--principal", "bob").out
    assert cli("memory", "delete", theirs).code == 1


def test_a_text_comes_from_stdin_and_replaces_the_one_of_its_id(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("first words", "second words"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert kept(cli, "-", "--id", "note") == "note"
    [only] = json.loads(cli("memory", "list", "--json").out)
    assert only["text"] == "second words"


def test_a_folder_is_imported_and_only_what_changed_once_more(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "a.md").write_text("# Roof\n\nThe storm tore off the roof.")
    (notes / "deep" / "b.txt").write_text("The boiler is serviced in May.")
    (notes / "broken.txt").write_bytes(b"\xff\xfe\x00")
    (notes / "photo.jpg").write_bytes(b"x")
    (notes / ".hidden.md").write_text("not for you")
    (notes / "link.md").symlink_to(tmp_path / "elsewhere.md")
    first = cli("memory", "import", str(notes))
    assert (first.code, first.out) == (0, "3 files: 2 stored, 1 skipped\n")
    assert "skipped: broken.txt is not UTF-8 text" in first.err
    assert "3 of 3 files" in first.err
    found = cli("memory", "search", "boiler service", "--limit", "1")
    assert "deep/b.txt" in found.out
    (notes / "a.md").write_text("The roof is mended.")
    again = json.loads(cli("memory", "import", str(notes), "--json").out)
    assert (again["stored"], again["unchanged"], again["skipped"]) == (1, 1, 1)
    assert len(json.loads(cli("memory", "list", "--json").out)) == 2
    assert "mended" in cli("memory", "search", "roof", "--limit", "1").out


def test_a_pdf_without_its_package_is_skipped_and_the_command_is_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.4")
    ended = cli("memory", "import", str(tmp_path))
    assert (ended.code, "[pdf]" in ended.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("import", "nowhere"), "there is no folder"),
        (("add", "x", "--metadata", "[1]"), "is not a JSON object"),
        (("list", "--since", "soon"), "isn't a duration"),
    ],
)
def test_wrong_usage_says_what_to_write(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    ended = cli("memory", *arguments)
    assert (ended.code, told in ended.err) == (2, True), ended


def test_an_empty_text_is_refused_and_an_empty_folder_said(cli: Cli, tmp_path: Path) -> None:
    ended = cli("memory", "add", "  ")
    assert (ended.code, "needs a letter" in ended.err) == (2, True)
    (tmp_path / "void").mkdir()
    assert "holds no Markdown" in cli("memory", "import", str(tmp_path / "void")).err


def test_the_research_tools_are_a_library_by_name(cli: Cli, serve: Serve) -> None:
    listed = json.loads(cli("tools", "list", "--library", "research", "--json").out)
    names = {"web_search", "fetch_page", "read_file", "get_current_time", "search_memory", "store_memory"}
    assert {item["name"] for item in listed} == names
    kept(cli, "The boiler is serviced in May.")
    with serve(call("search_memory", query="boiler"), "In May [1].") as server:
        ended = cli("run", "When?", "--durable", "--library", "research", "--model", f"{server.url}#any", "--json")
    assert ended.code == 0, ended.err
    [record] = json.loads(ended.out)["tool_calls"]
    assert record["result"]["results"][0]["text"] == "The boiler is serviced in May."
    assert "careful researcher" in json.dumps(server.requests[0])


def pdf(*pages: str) -> bytes:
    """A PDF file with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for at, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * at} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    start = len(body)
    body += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return f"{body}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()


def test_a_pdf_is_read_page_by_page_and_a_broken_one_is_skipped(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "good.pdf").write_bytes(pdf("Invoice of March", "Paid."))
    (tmp_path / "bad.pdf").write_bytes(b"%PDF bad")
    ended = cli("memory", "import", str(tmp_path))
    assert (ended.code, ended.out) == (0, "2 files: 1 stored, 1 skipped\n"), ended.err
    assert "skipped: bad.pdf cannot be read as PDF:" in ended.err
    assert json.loads(cli("memory", "list", "--json").out)[0]["text"] == "Invoice of March\n\nPaid."
