"""Markdown in the terminal. What reads a pipe or a file gets the text as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding

from journeyman.doors.cli import screen

if TYPE_CHECKING:
    from rich.markdown import Markdown

MOST_DRAWN = 50_000
"""Longer texts are printed as they are: drawing takes its time."""


def print_answer(text: str) -> None:
    """An answer on stdout."""
    on = screen.console()
    if on.is_terminal:
        show_markdown(on, text)
    else:
        screen.write(text)


def show_markdown(on: Console, text: str, *, indent: int = 0) -> None:
    """Markdown, laid out where there is a terminal."""
    if not on.is_terminal or len(text) > MOST_DRAWN:
        return screen.show(on, screen.escaped(text), indent=indent)
    return on.print(Padding(drawn(text), (0, 0, 0, indent)))


def drawn(text: str) -> Markdown:
    """Markdown in which nothing is hidden: HTML is shown as it is written, a link or an image with where it leads."""
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown  # only what lays something out pays for its parser

    shown = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    shown.parsed = parser.parse(screen.escaped(text))
    for token in shown.parsed:
        for part in token.children or ():
            if part.type == "softbreak":  # lines stay lines, as on the page
                part.type = "hardbreak"
    return shown
