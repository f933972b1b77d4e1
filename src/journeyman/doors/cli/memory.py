"""``journeyman memory``: documents are added, imported from folders, found, listed and deleted."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from journeyman.app import ImportedFile, Journeyman
from journeyman.core.errors import ConfigurationError
from journeyman.core.memory import MemoryDocument
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import command, in_store
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, Json, Limit, Store, WrongUsageError
from journeyman.doors.cli.progress import progress_shown

TEXT_WIDTH = 100
SKIPPED_SHOWN = 20
MOST_BYTES = 10_000_000
"""Of standard input."""

Owner = Annotated[
    str | None,
    typer.Option("--principal", metavar="ID", help="Whose. Without it, yours: of your user name.", show_default=False),
]
Metadata = Annotated[
    str | None,
    typer.Option(metavar="JSON", help="""Of the documents, e.g. '{"topic": "health"}'.""", show_default=False),
]
Since = Annotated[
    str | None, typer.Option(metavar="SPAN", help="Only what was stored since then: 90s, 12h, 7d…", show_default=False)
]

memory = typer.Typer(no_args_is_help=True)


@memory.command("add")
def add_document(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads it from stdin.")],
    metadata: Metadata = None,
    id: Annotated[
        str | None, typer.Option(metavar="ID", help="Replaces the document of this id.", show_default=False)
    ] = None,
    principal: Owner = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Remember a text."""
    said, written, owner = _metadata(metadata), _text(text), principal or options.user_name()
    kept = in_store(store, lambda app: app.memory.store_document(written, said, id=id, principal=owner), create=True)
    if as_json:
        return screen.print_json(kept)
    return screen.say(f"kept as {screen.escaped(kept.id)}")


@memory.command("import")
def import_folder(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="With Markdown, text or PDF files.", show_default=False)
    ],
    metadata: Metadata = None,
    principal: Owner = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Remember the files of a folder. Once more: only those that have changed."""
    said, owner = _metadata(metadata), principal or options.user_name()

    async def whole(app: Journeyman) -> list[ImportedFile]:
        files = []
        with progress_shown() as show:
            async for file in app.memory.import_folder(folder, metadata=said, principal=owner):
                files.append(file)
                show(file.done, file.total, f"{file.done} of {screen.counted(file.total, 'file')}")
        return files

    try:
        files = in_store(store, whole, create=True)
    except ConfigurationError as error:
        raise WrongUsageError(str(error)) from None
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
    skipped = [file for file in files if file.outcome == "skipped"]
    for file in skipped[:SKIPPED_SHOWN]:
        screen.note(f"skipped: {file.path} {file.reason}")
    if len(skipped) > SKIPPED_SHOWN:
        screen.note(f"skipped: {len(skipped) - SKIPPED_SHOWN:,} more; --json lists all")


@memory.command("search")
def search_documents(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, in words.")],
    top_k: Annotated[int, typer.Option(min=1, max=100, help="How many to show at most.")] = 5,
    since: Since = None,
    metadata: Metadata = None,
    principal: Owner = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """The documents nearest to a text, by words and by meaning, best first."""
    said, first, owner = _metadata(metadata), _moment(since, "--since"), principal or options.user_name()
    hits = in_store(
        store, lambda app: app.memory.semantic_search(text, top_k, since=first, metadata=said, principal=owner)
    )
    if as_json:
        return screen.print_json(screen.dumped(hits))
    if not hits:
        return screen.note("nothing like that is remembered")
    for hit in hits:
        document = hit.document
        screen.say(Text(f"{document.id}  {_about(document)}", style="bold"))
        screen.show(screen.console(), screen.escaped(hit.excerpt), indent=2)
    return None


@memory.command("list")
def list_documents(
    since: Since = None,
    until: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only what was stored before then.", show_default=False)
    ] = None,
    metadata: Metadata = None,
    principal: Owner = None,
    limit: Limit = 50,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """What is remembered, newest first."""
    owner = principal or options.user_name()
    asked: dict[str, Any] = {
        "since": _moment(since, "--since"),
        "until": _moment(until, "--until"),
        "metadata": _metadata(metadata),
        "limit": limit,
    }
    found = in_store(store, lambda app: app.memory.query(**asked, principal=owner))
    if as_json:
        screen.print_json(screen.dumped(found))
    elif not found:
        screen.note(f"nothing is remembered for {owner!r}" if not (since or until or metadata) else "nothing fits")
    else:
        table = screen.listing("id", "stored", "text")
        for document in found:
            text = screen.shortened(document.text, TEXT_WIDTH)
            table.add_row(screen.escaped(document.id), screen.local_time(document.created_at), text)
        screen.console().print(table)


@memory.command("delete")
def delete_documents(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="As 'list' and 'search' show them.")],
    principal: Owner = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Forget documents, with all that was made of them. Backups made before still hold them."""
    owner = principal or options.user_name()

    async def whole(app: Journeyman) -> list[str]:
        return [key for key in dict.fromkeys(ids) if not await app.memory.delete(key, principal=owner)]

    missing = in_store(store, whole)
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


def _text(text: str) -> str:
    if text != "-":
        return text
    read = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(read) > MOST_BYTES:
        raise WrongUsageError(f"stdin has more than {MOST_BYTES:,} bytes; store it in parts")
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise WrongUsageError("stdin is not UTF-8 text") from None


def _metadata(given: str | None) -> dict[str, Any]:
    return {} if given is None else options.json_object(given, option="--metadata")


def _moment(given: str | None, option: str) -> float | None:
    return None if given is None else time.time() - options.seconds(given, option=option)
