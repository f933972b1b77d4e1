"""Documents and queries: the Semanlink collection of the package `cherche` (MIT), a person's notes of sixteen years.

Queries are the titles of 314 arXiv papers, documents their abstracts: texts of which neither contains the other. Among
them stand the collection's other 6,900 bookmarks (title and comment) and, up to the number wanted, documentation of
Python's standard library. Left out are 72 bookmarks that name or link one of the papers, such as "The Annotated
Transformer": they would be right as well.
"""

import ast
import json
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import packages

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
LEAST_CHARS = 60
LONGEST_KEY = 400
"""Of an address that is a document's id."""
LEAST_WORDS = 8
"""Of a note that is used as a query."""


@dataclass(frozen=True)
class Corpus:
    documents: dict[str, str]
    """By id."""
    titles: list[tuple[str, str]]
    """Queries, each with the id of the right document."""
    notes: list[tuple[str, str]]
    """What the collector wrote about a paper, in their own words: the same, and harder."""


def load(count: int) -> Corpus:
    """So many documents; more than there are texts of are numbered copies of them."""
    folder = packages.install("memory", REQUIREMENTS) / "cherche" / "data" / "semanlink"
    papers: list[dict[str, Any]] = json.loads((folder / "arxiv.json").read_text())
    papers = [paper for paper in papers if paper["arxiv_summary"] and paper["arxiv_title"]]
    documents = {paper["document"]: paper["arxiv_summary"] for paper in papers}
    titles = [(paper["arxiv_title"], paper["document"]) for paper in papers]
    notes = [(note, paper["document"]) for paper in papers if (note := _own_words(paper["comment"]))]
    about = _About(papers)
    for row in json.loads((folder / "docs.json").read_text()):
        text = "" if about(row) else f"{row['title']}\n{row['comment']}".strip()
        # The papers are in there, too, with their titles: they would be found in the place of their abstracts.
        if text and not row["arxiv_num"] and row["document"] not in documents and len(row["document"]) < LONGEST_KEY:
            documents[row["document"]] = text
    for number, text in enumerate(documentation()):
        if len(documents) >= count:
            break
        documents.setdefault(f"python-{number}", text)
    kept = dict(list(documents.items())[:count])
    originals = list(kept.items())
    while len(kept) < count:
        copy, at = divmod(len(kept), len(originals))
        key, text = originals[at]
        kept[f"{key}#{copy}"] = f"{text[:300]}\nCopy {copy} of this note."
    return Corpus(kept, titles, notes)


class _About:
    """Whether a bookmark is about one of the papers: it has the title, the number at arXiv or the address of one."""

    def __init__(self, papers: list[dict[str, Any]]) -> None:
        # A title of one or two words may stand anywhere.
        self._titles = {_plain(paper["arxiv_title"]) for paper in papers if len(paper["arxiv_title"].split()) >= 3}
        self._marks = {paper["arxiv_num"] for paper in papers}
        self._marks |= {paper["document"].partition("semanlink.net")[2] for paper in papers}
        self._marks.discard("")

    def __call__(self, row: dict[str, Any]) -> bool:
        named = json.dumps(
            [row[name] for name in ("title", "comment", "relatedDoc", "seeAlso", "references", "mainDoc")]
        )
        said = _plain(f"{row['title']} {row['comment']}")
        return any(mark in named for mark in self._marks) or any(title in said for title in self._titles)


def _plain(text: str) -> str:
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


def _own_words(comment: str) -> str:
    said = " ".join(line for line in comment.splitlines() if line.strip() and not line.lstrip().startswith(">"))
    return said[:300] if len(said.split()) >= LEAST_WORDS and "http" not in said else ""


def documentation() -> Iterator[str]:
    """The docstrings of Python's standard library."""
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if {"test", "tests", "site-packages", "idlelib"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text())
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text and len(text) >= LEAST_CHARS:
                    yield text
