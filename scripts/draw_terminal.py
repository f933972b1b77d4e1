"""Draws docs/assets/terminal.svg: what a terminal shows while a short story is typed into it. Nothing is made up.

The commands run for real, on the embedded model, in a folder that is thrown away. ``make picture`` draws it again.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import chdir
from itertools import groupby
from pathlib import Path
from unittest.mock import patch
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from scripts.terminal_screen import PLAIN, Cell, Look
from tests.doors.cli.driving import Terminal
from tests.engine import with_an_engine

PICTURE = Path(__file__).parent.parent / "docs" / "assets" / "terminal.svg"
COLUMNS = 84
SECONDS = 900.0
"""How long one command may take on a machine with much else to do."""
STORY: list[tuple[str, list[str], str]] = [  # a command, what is typed while it runs, and what must be seen
    ('run "Add a task to buy milk"', [], "create_task"),
    ("chat", ["Delete the task to buy milk", "y", "/quit"], "May this run?"),
]
LIGHT = ["#24292f", "#b3261e", "#116329", "#7d4e00", "#0550ae", "#8250df", "#0e6a80", "#57606a"]
DARK = ["#e6edf3", "#ff7b72", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#8b949e"]
CELL, LINE, MARGIN = 8.4, 19, 18
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


# --- the story


def told() -> list[list[Cell]]:
    """The story as lines of cells."""
    lines: list[list[Cell]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        patch.dict(os.environ, _environment(folder), clear=True),
    ):
        for words, typed, expected in STORY:
            lines += [_typed(f"$ journeyman {words}"), *_shown(words, typed, expected), []]
    return lines[:-1]


def _environment(folder: str) -> dict[str, str]:
    kept = ("PATH", "PYTHONPATH", "HOME", "LANG", "TMPDIR")
    return {name: value for name, value in os.environ.items() if name in kept} | {
        "TERM": "xterm",
        "LOGNAME": "ada",
        "XDG_STATE_HOME": folder,
        "JOURNEYMAN_MODEL": "embedded",
        "COLUMNS": str(COLUMNS),
    }


def _shown(words: str, typed: list[str], expected: str) -> list[list[Cell]]:
    with with_an_engine():
        program = Terminal(*shlex.split(words), columns=COLUMNS)
        try:
            for line in typed:
                program.answer(f"{line}\n", patience=SECONDS)
            code = program.end(patience=SECONDS)
        finally:
            program.close()
    if code != 0 or expected not in program.screen.text:
        raise SystemExit(f"this is not the story that was to be told:\n{program.screen.text}")
    lines = program.screen.lines
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _typed(text: str) -> list[Cell]:
    return [(character, Look(bold=True)) for character in text]


# --- the picture


def drawn(lines: list[list[Cell]]) -> str:
    width, height = COLUMNS * CELL + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    rows = "\n".join(_row(line, number) for number, line in enumerate(lines))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">
<title>journeyman in a terminal: a task is added, and its deletion waits for a person's yes</title>
<style>
text {{ font: 14px {FONTS}; white-space: pre; fill: var(--c0); }}
rect {{ fill: var(--back); stroke: var(--edge); }}
.bold {{ font-weight: 700; }} .dim {{ fill: var(--c7); }} .italic {{ font-style: italic; }}
{" ".join(f".c{number} {{ fill: var(--c{number}); }}" for number in range(1, 8))}
svg {{ --back: #f6f8fa; --edge: #d0d7de; {_variables(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ svg {{ --back: #0d1117; --edge: #30363d; {_variables(DARK)} }} }}
</style>
<rect x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>
{rows}
</svg>
"""


def _variables(colours: list[str]) -> str:
    return " ".join(f"--c{number}: {colour};" for number, colour in enumerate(colours))


def _row(line: list[Cell], number: int) -> str:
    parts, column = [], 0
    for look, cells in groupby(line, key=lambda cell: cell[1]):
        run = list(cells)
        text = "".join(character for character, _ in run)
        # Each run is put on the grid, whatever the font is.
        place = f'x="{MARGIN + column * CELL:g}" textLength="{len(run) * CELL:g}" lengthAdjust="spacingAndGlyphs"'
        parts.append(f'<tspan {place} class="{_class(look)}">{escape(text)}</tspan>')
        column += len(run)
    return f'<text xml:space="preserve" y="{MARGIN + (number + 0.75) * LINE:g}">{"".join(parts)}</text>'


def _class(look: Look) -> str:
    names = [] if look == PLAIN else [name for name in ("bold", "dim", "italic") if getattr(look, name)]
    return " ".join(names + ([f"c{look.colour % 8}"] if look.colour else []))


# --- what of it may differ


def text_of(picture: str) -> list[str]:
    """The lines of a picture."""
    root = ElementTree.fromstring(picture)
    return ["".join(row.itertext()).rstrip() for row in root.iter("{http://www.w3.org/2000/svg}text")]


def masked(lines: list[str]) -> list[str]:
    """Without ids, durations, dates and numbers of tokens, and the blanks that make up for their length."""
    text = re.sub(r"\b[a-z]+_[0-9a-f]{8,}\b", "ID", "\n".join(lines))
    text = re.sub(r"\b\d{4}-\d\d-\d\d(?:[T ][\d:.+]+)?", "TIME", text)
    text = re.sub(r"\b[\d.,]+ (?:ms|s|min|h)\b", "TIME", text)
    text = re.sub(r"\b[\d.,]+ tokens?\b", "TOKENS", text)
    return [" ".join(re.sub(r"[─]+", "─", line).split()) for line in text.splitlines()]


if __name__ == "__main__":
    PICTURE.write_text(drawn(told()), encoding="utf-8")
