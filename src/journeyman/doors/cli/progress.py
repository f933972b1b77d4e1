"""How far something has come: a bar for a person, some lines for a log; on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import progress as bars

from journeyman.doors.cli import screen

MOST_LINES = 20
"""How many lines of progress a log gets."""


@contextmanager
def progress_shown() -> Iterator[Callable[[int, int, str], None]]:
    """Yields what is to be told of each step: how many are done, of how many, and that in words."""
    console = screen.console(stderr=True)

    def line(done: int, total: int, text: str) -> None:
        if done % -(-total // MOST_LINES) == 0 or done == total:
            screen.note(text)

    if not console.is_terminal:
        yield line
        return
    columns = (
        bars.SpinnerColumn(),
        bars.BarColumn(),
        bars.TextColumn("{task.description}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as bar:
        shown = bar.add_task("starting", total=None)
        yield lambda done, total, text: bar.update(shown, completed=done, total=total, description=text)
