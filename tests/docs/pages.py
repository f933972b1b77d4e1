"""The documentation's pages as a reader sees them: their blocks, and the commands of a terminal session in one.

A block says by its language what it is:

- `python`: a whole program. With `title="NAME"` the reader saves it under that name.
- `console`: a terminal session. A line that begins with `$ ` is a command, goes on after a `\\` at its end or up to the
  end of its here-document, and is followed by what it prints; `…` stands for anything.
- any other language: a file or a fragment of that kind, saved where it has a `title`.
- `text`, or no language: not for running (a grammar of options, an excerpt of an answer).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_HERE_DOCUMENT = re.compile(r"<<\s*'?(\w+)'?")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    title: str | None
    text: str

    @property
    def place(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


@dataclass(frozen=True)
class Command:
    text: str
    output: str
    """What the page says it prints; empty where the page does not say."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        language, _, rest = fence[1].partition(" ")
        title = _TITLE.search(rest)
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(page, line, language, title and title[1], fence[2]))
    return [block for block in found if not languages or block.language in languages]


def commands(session: Block) -> Iterator[Command]:
    """The commands of a console block, each with what is printed after it."""
    lines = session.text.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), f"{session.place}: a terminal session begins with a command, not {line!r}"
        command = [line.removeprefix("$ ")]
        while command[-1].endswith("\\"):
            command.append(lines.pop(0))
        if here := _HERE_DOCUMENT.search(command[0]):
            while command[-1] != here[1]:
                command.append(lines.pop(0))
        output = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        yield Command("\n".join(command), "\n".join(output))
