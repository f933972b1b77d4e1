"""Folders of files as documents: Markdown and text, and PDF with the extra ``pdf``.

A file has one document, whose id follows from where the file is: a folder that is read again replaces what has changed,
and embeds nothing that has not. Hidden files, links and files that may hold credentials are left out.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from journeyman.core.data import digest
from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.sensitive.files import secret_parts

TEXTS = frozenset((".md", ".markdown", ".txt", ".text", ".rst"))
PDF = ".pdf"
MOST_FILES = 100_000
MOST_BYTES = 50_000_000
"""Of one file."""
MOST_PAGES = 2_000
"""Of one PDF."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """What became of one file of a folder."""

    path: str
    """Relative to the folder."""
    outcome: Literal["stored", "unchanged", "skipped"]
    document_id: str | None
    reason: str | None
    """Why it was skipped."""
    done: int
    """Files so far, this one included."""
    total: int
    by_words_alone: int = 0
    """How many passages of it are found by their words alone until searches have made their vectors."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file's text and what is known about it, or why there is none."""

    id: str
    metadata: dict[str, Any]
    text: str = ""
    reason: str | None = None


def files_in(folder: Path) -> list[Path]:
    """The files of a folder that can be remembered, in order. Raises ConfigurationError where it is no folder."""
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {str(folder)!r}; name one that holds Markdown, text or PDF files")
    files = list(islice(_readable(folder.resolve()), MOST_FILES + 1))
    if len(files) > MOST_FILES:
        raise ConfigurationError(f"{str(folder)!r} has more than {MOST_FILES:,} files; import its parts")
    return files


def _readable(root: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            wanted = path.suffix.lower() in TEXTS or path.suffix.lower() == PDF
            # What a link leads to may be outside, and a pipe might never end.
            if wanted and not name.startswith(".") and not path.is_symlink() and path.is_file():
                yield path


async def read_file(path: Path, folder: Path, *, known: Mapping[str, str]) -> ReadFile:
    """A file as a document. ``known`` has digests by document id: of a file that has not changed no text is read."""
    return await asyncio.to_thread(_read, path, folder, known)


def document_id(path: Path) -> str:
    return f"file_{digest(str(path))}"


def _read(path: Path, folder: Path, known: Mapping[str, str]) -> ReadFile:
    folder = folder.resolve()
    key, relative = document_id(path), path.relative_to(folder)
    metadata: dict[str, Any] = {"source": relative.as_posix(), "folder": str(folder)}
    if secret_parts(relative.parts):
        return ReadFile(key, metadata, reason="may hold credentials")
    try:
        if path.stat().st_size > MOST_BYTES:
            return ReadFile(key, metadata, reason=f"has more than {MOST_BYTES:,} bytes")
        content = path.read_bytes()
        modified = path.stat().st_mtime
    except OSError as error:
        return ReadFile(key, metadata, reason=f"cannot be read: {error.strerror}")
    metadata |= {"sha256": hashlib.sha256(content).hexdigest(), "modified": modified}
    if known.get(key) == metadata["sha256"]:
        return ReadFile(key, metadata)
    text, reason = _pdf_text(path) if path.suffix.lower() == PDF else _plain_text(content)
    if reason is None and not text.strip():
        reason = "holds no text"
    return ReadFile(key, metadata, text, reason)


def _plain_text(content: bytes) -> tuple[str, str | None]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "is not UTF-8 text"
    return ("", "is not text") if "\0" in text else (text, None)


def _pdf_text(path: Path) -> tuple[str, str | None]:
    try:
        from pypdf import PdfReader
    except ImportError:
        return "", f"is a PDF, which needs another package: {install_command('pdf')}"
    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # what it finds odd is not for the terminal
    try:
        pages = PdfReader(path).pages
        if len(pages) > MOST_PAGES:
            return "", f"has more than {MOST_PAGES:,} pages"
        return "\n\n".join(page.extract_text() for page in pages), None
    except Exception as error:  # whatever a broken file makes the parser raise
        return "", f"cannot be read as PDF: {type(error).__name__}"
