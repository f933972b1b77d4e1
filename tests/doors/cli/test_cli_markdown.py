"""Answers on a terminal: Markdown is drawn, nothing of it is hidden, and nothing of it is obeyed."""

from __future__ import annotations

import pytest

from journeyman.doors.cli import screen
from scripts.terminal_screen import Look, Screen

TEXT = """\
# Shelves
first line
second with **bold** and `code`

| shelf | boxes |
|---|---|
| a | 3 |

<b>html</b> <!-- note --> [here](http://evil.example/x) ![picture](http://evil.example/y)

&#x1b;[2J &#x202e; \x1b[2J [red]markup[/red] :smile:
"""


def test_markdown_is_drawn_with_all_that_it_says() -> None:
    console = screen._Console(force_terminal=True, width=70, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(screen.drawn(TEXT))
    written = captured.get()
    assert "\x1b[2J" not in written
    assert "\u202e" not in written
    assert "\x1b]8" not in written
    shown = Screen(columns=80)
    shown.feed(written.replace("\n", "\r\n"))
    lines = [" ".join(line.split()) for line in shown.text.splitlines()]
    assert "first line" in lines
    assert "second with bold and code" in lines
    for text in ("a 3", "<b>html</b> <!-- note --> here (http://evil.example/x)", "http://evil.example/y"):
        assert text in "\n".join(lines)
    assert "\\u202e \\u001b[2J [red]markup[/red] :smile:" in shown.text
    row = lines.index("second with bold and code")
    assert shown.lines[row][12] == ("b", Look(bold=True))


def test_a_program_gets_the_answer_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    screen.print_answer("**bold**\n| a | b |")
    assert capsys.readouterr().out == "**bold**\n| a | b |\n"
