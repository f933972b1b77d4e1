"""The picture of a terminal in the README, and the reading of terminals that it and other tests rely on."""

from __future__ import annotations

import pytest

from scripts.draw_terminal import PICTURE, drawn, masked, text_of, told
from scripts.terminal_screen import Look, Screen


def test_a_screen_is_what_a_terminal_would_show() -> None:
    screen = Screen(columns=10, rows=3)
    screen.feed("one\r\n\x1b[1;31mtwo\x1b[0m\r\nthree\x1b[2D!\x1b[A\x1b[K\x1b[1G\x1b[")
    screen.feed("32mTWO\x1b[39m\x1b]0;title\x07\n\r日本")
    assert screen.text == "one\nTWO\n日本e"
    assert screen.lines[1][0] == ("T", Look(colour=2))
    assert (screen.row, screen.before_cursor) == (2, "日本")
    screen.feed("\r\x1b[Jtwelve letters\x1b[1A\x1b[2K")
    assert screen.text == "one\nTWO\n\nters"


def test_a_picture_holds_the_text_as_it_was_shown() -> None:
    screen = Screen(columns=20)
    screen.feed("\x1b[1m<you>\x1b[0m & \x1b[36m│\x1b[0m  日本  \x1b[2mdim\x1b[0m\r\n\r\nend")
    assert text_of(drawn(screen.lines)) == ["<you> & │  日本  dim", "", "end"]


def test_only_ids_and_times_may_differ() -> None:
    one = ["✓ a(task_0123456789ab) · 1.2 s · 17 tokens  │", "╰───── 24 h ─╯"]
    assert masked(one) == masked(["✓ a(task_ba9876543210) · 31 ms · 4 tokens │", "╰──────── 3 h ─╯"])
    assert masked(one) != masked(["✓ b(task_0123456789ab) · 1.2 s · 17 tokens  │", "╰───── 24 h ─╯"])


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1_800)
def test_the_picture_in_the_readme_is_what_the_commands_print() -> None:
    """After a change of what they print: ``make picture``."""
    shown = ["".join(character for character, _ in line).rstrip() for line in told()]
    assert masked(text_of(PICTURE.read_text(encoding="utf-8"))) == masked(shown)
