"""Two sets of texts whose title is the query and whose body, without the title, is the right document among 1,000.

``docstrings``: Python's standard library, first paragraph and what follows. ``manuals``: the manual pages of this
machine, the line after NAME and the description. They are written by other people for other readers; the first is short
and full of identifiers, the second long and plain. Queries with an odd digest are for tuning, the others for one look
at the end. What is installed differs between machines, and so do the sets.
"""

import gzip
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.memory.corpus import documentation

DOCUMENTS, QUERIES = 1_000, 200
KINDS = ("docstrings", "manuals")
MANUALS = Path("/usr/share/man")
_TITLE_WORDS = range(4, 25)
_LEAST_BODY = 120
_LONGEST_BODY = 4_000
_FONT = re.compile(r"\\f(?:\[\w*\]|\(..|.)|\\s[-+]?\d|\\[&|/,%cd]|\\\*\(?\w")
_GLYPHS = {"\\-": "-", "\\(aq": "'", "\\(bu": "*", "\\(en": "-", "\\(em": "-", "\\e": "\\", "\\ ": " ", "\\(dq": '"'}


def load(kind: str) -> tuple[dict[str, str], list[tuple[str, str]], list[tuple[str, str]]]:
    """The documents, then queries for tuning and the others, each with the id of the right document."""
    seen: dict[str, str] = {}
    for title, body in (_docstrings if kind == KINDS[0] else _manuals)():
        if len(title.split()) in _TITLE_WORDS and len(body) >= _LEAST_BODY:
            seen.setdefault(title, body[:_LONGEST_BODY])
    bodies: dict[str, str] = {}
    for title in sorted(seen, key=_digest):
        bodies.setdefault(seen[title][:_LEAST_BODY], title)
    chosen = sorted(bodies.values(), key=_digest)[:DOCUMENTS]
    documents = {_digest(title): seen[title] for title in chosen}
    queries = [(title, _digest(title)) for title in chosen[: 2 * QUERIES]]
    halves = [[row for row in queries if int(row[1], 16) % 2 == odd][: QUERIES // 2] for odd in (1, 0)]
    return documents, halves[0], halves[1]


def _digest(title: str) -> str:
    return hashlib.sha256(title.encode()).hexdigest()[:16]


def _docstrings() -> Iterator[tuple[str, str]]:
    for text in documentation():
        title, _, body = text.partition("\n\n")
        yield " ".join(title.split()), body.strip()


def _manuals() -> Iterator[tuple[str, str]]:
    for path in sorted(MANUALS.glob("man[1-8]/*.gz")):
        # One vendor's command line would be most of them where it is installed.
        if path.is_symlink() or path.name.startswith("gcloud"):
            continue
        try:
            source = gzip.decompress(path.read_bytes()).decode()
        except (OSError, UnicodeDecodeError):
            continue
        parts = re.split(r'^\.S[Hh] +"?([A-Za-z ]+)"? *$', source, flags=re.MULTILINE)
        sections = dict(zip(map(str.upper, map(str.strip, parts[1::2])), parts[2::2], strict=True))
        names, dash, title = _plain(sections.get("NAME", "")).partition(" - ")
        body = _plain(sections.get("DESCRIPTION", ""))
        # The name of the command would find its page by itself.
        for name in names.replace(",", " ").split():
            title = re.sub(rf"\b{re.escape(name)}\b", "", title)
        yield (" ".join(title.split()) if dash else ""), body


def _plain(source: str) -> str:
    lines = []
    for line in source.splitlines():
        if line.startswith((".\\", "'\\", ".de", ".if", ".ie", ".el", ".nr", ".ds", ".IX")):
            continue
        line = re.sub(r"^[.'][A-Z]{1,2}[a-z]? *|^\.[a-z]+ *", "", line)
        for mark, char in _GLYPHS.items():
            line = line.replace(mark, char)
        lines.append(_FONT.sub("", line).replace('"', ""))
    return "\n".join(line for line in lines if line.strip())
