"""``journeyman memory``: documents are added, imported from folders, found, listed and deleted."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from journeyman.app import ImportedFile
from journeyman.app.desk import Desk, NotFoundError
from journeyman.app.operations import memory as operations
from journeyman.core.memory import MemoryDocument
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import naming
from journeyman.doors.cli.loading import at_desk, command
from journeyman.doors.cli.operated import Call, Listing, Typed, operated
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, Json, Store, WrongUsageError
from journeyman.doors.cli.screen import progress_shown

TEXT_WIDTH = 100
SKIPPED_SHOWN = 20
MOST_BYTES = 10_000_000
"""Of standard input."""

Owner = Annotated[
    str | None, typer.Option("--principal", metavar="ID", help="Whose. Without it, yours: of your user name.")
]
METADATA_HELP = """Of the documents, e.g. '{"topic": "health"}'."""
Metadata = Annotated[str | None, typer.Option(metavar="JSON", help=METADATA_HELP)]


def _text(text: str, *, option: str) -> str:
    if text != "-":
        return text
    read = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(read) > MOST_BYTES:
        raise WrongUsageError(f"stdin has more than {MOST_BYTES:,} bytes; store it in parts")
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise WrongUsageError("stdin is not UTF-8 text") from None


def _filter(text: str, *, option: str) -> str:
    options.json_object(text, option=option)
    return text


def _moment(span: str, *, option: str) -> float:
    return time.time() - options.seconds(span, option=option)


FILTERS = {
    "since": Typed(metavar="SPAN", help="Only what was stored since then: 90s, 12h, 7d…", read=_moment),
    "until": Typed(metavar="SPAN", help="Only what was stored before then.", read=_moment),
    "metadata": Typed(metavar="JSON", help=METADATA_HELP, read=_filter),
}
NEW = {
    "text": Typed(help="What to remember; - reads it from stdin.", read=_text),
    "metadata": Typed(metavar="JSON", help=METADATA_HELP, read=options.json_object),
    "id": Typed(metavar="ID", help="Replaces the document of this id."),
}

memory = typer.Typer(no_args_is_help=True)


@operated(memory, "memory add", operations.add_document, typed=NEW, by=Owner, create=True)
def say_kept(document: MemoryDocument, _: Call) -> None:
    screen.say(f"kept as {screen.escaped(document.id)}")
    _say_by_words(document.by_words_alone or 0)


def _say_by_words(count: int) -> None:
    if count:
        passages = screen.counted(count, "passage")
        screen.note(f"{passages} found by words alone for now; searches make the missing vectors little by little")


@memory.command("import")
def import_folder(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="With Markdown, text or PDF files.")],
    metadata: Metadata = None,
    principal: Owner = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Remember the files of a folder. Once more: only those that have changed."""
    said = {} if metadata is None else options.json_object(metadata, option="--metadata")
    owner = principal or options.user_name()

    async def whole(desk: Desk) -> list[ImportedFile]:
        files = []
        with progress_shown() as show:
            async for file in desk.app.memory.import_folder(folder, metadata=said, principal=owner):
                files.append(file)
                show(file.done, file.total, f"{file.done} of {screen.counted(file.total, 'file')}")
        return files

    with naming():
        files = at_desk(store, whole, create=True)
    counts: Counter[str] = Counter(file.outcome for file in files)
    if as_json:
        screen.print_json({**counts, "files": [asdict(file) for file in files]})
    else:
        _say_imported(files, counts, folder)
    if counts["skipped"] and not counts["stored"] and not counts["unchanged"]:
        raise typer.Exit(ExitCode.FAILED)


def _say_imported(files: Sequence[ImportedFile], counts: Counter[str], folder: Path) -> None:
    if not files:
        screen.note(f"{str(folder)!r} holds no Markdown, text or PDF file")
        return
    parts = [f"{counts[outcome]:,} {outcome}" for outcome in ("stored", "unchanged", "skipped") if counts[outcome]]
    screen.say(f"{screen.counted(len(files), 'file')}: {', '.join(parts)}")
    _say_by_words(sum(file.by_words_alone for file in files))
    skipped = [file for file in files if file.outcome == "skipped"]
    for file in skipped[:SKIPPED_SHOWN]:
        screen.note(f"skipped: {file.path} {file.reason}")
    if len(skipped) > SKIPPED_SHOWN:
        screen.note(f"skipped: {len(skipped) - SKIPPED_SHOWN:,} more; --json lists all")


WORDS = Typed(metavar="TEXT", help="What to look for, in words.")


@operated(memory, "memory search", operations.search_documents, typed={**FILTERS, "q": WORDS}, by=Owner, rows="results")
def show_hits(hits: operations.Found, _: Call) -> None:
    """The nearest to a text, best first."""
    if not hits.results:
        screen.note("nothing like that is remembered")
    for hit in hits.results:
        screen.say(Text(f"{hit.document.id}  {_about(hit.document)}", style="bold"))
        screen.show(screen.console(), screen.escaped(hit.excerpt), indent=2)


operated(memory, "memory list", operations.list_documents, typed=FILTERS, by=Owner)(
    Listing(
        "documents",
        {
            "id": "id",
            "stored": lambda document: screen.local_time(document.created_at),
            "text": lambda document: screen.shortened(document.text, TEXT_WIDTH),
        },
        empty="nothing is remembered here",
    )
)


@memory.command("delete")
def delete_documents(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="As 'list' and 'search' show them.")],
    principal: Owner = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Forget documents, with all that was made of them. Backups made before still hold them."""
    owner = principal or options.user_name()

    async def whole(desk: Desk) -> list[str]:
        missing = []
        for key in dict.fromkeys(ids):
            try:
                await operations.delete_document(desk, key)
            except NotFoundError:
                missing.append(key)
        return missing

    missing = at_desk(store, whole, by=owner)
    if gone := len(dict.fromkeys(ids)) - len(missing):
        screen.say(f"{screen.counted(gone, 'document')} forgotten")
    if missing:
        screen.note(
            f"{owner!r} has no document {', '.join(map(repr, missing))}; those there are: "
            f"{command(store, 'memory list')}"
        )
        raise typer.Exit(ExitCode.FAILED)


def _about(document: MemoryDocument) -> str:
    source = document.metadata.get("source")
    age = f"stored {screen.rough_duration(max(0.0, time.time() - document.created_at))} ago"
    return screen.escaped(f"{source}, {age}" if isinstance(source, str) else age)
