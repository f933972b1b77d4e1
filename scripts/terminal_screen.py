"""What a terminal shows after a program has written to it: enough of one to read rich's and prompt_toolkit's output."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from rich.cells import get_character_cell_size

_SEQUENCE = re.compile(
    r"\x1b\[(?P<parameters>[0-9;?]*)(?P<final>[@-~])"  # CSI
    r"|\x1b\].*?(?:\x07|\x1b\\)"  # OSC: titles and links
    r"|\x1b[()][A-Z0-9]|\x1b[=>78cDEMH]"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?]*|\][^\x07\x1b]*|[()])?$")


@dataclass(frozen=True, slots=True)
class Look:
    """How a cell is drawn. A colour is one of the 16 by number, or None for that of the terminal."""

    colour: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


PLAIN = Look()
Cell = tuple[str, Look]
_BLANK: Cell = (" ", PLAIN)


@dataclass(slots=True)
class Screen:
    """A window of so many columns and rows; lines that have left it at the top are kept, too."""

    columns: int = 80
    rows: int = 24
    lines: list[list[Cell]] = field(default_factory=lambda: [[]])
    _row: int = 0
    _column: int = 0
    _look: Look = PLAIN
    _wraps: bool = True
    _rest: str = ""

    # --- what is shown

    @property
    def text(self) -> str:
        return "\n".join(self.line(number) for number in range(len(self.lines)))

    @property
    def before_cursor(self) -> str:
        """The line in which the cursor is, up to it."""
        return "".join(character for character, _ in self.lines[self._row][: self._column])

    @property
    def row(self) -> int:
        """The line in which the cursor is."""
        return self._row

    def line(self, number: int) -> str:
        return "".join(character for character, _ in self.lines[number]).rstrip()

    # --- what is written

    def feed(self, written: str) -> None:
        written, at = self._rest + written, 0
        cut = _UNFINISHED.search(written)
        self._rest = "" if cut is None else cut[0]
        written = written[: len(written) - len(self._rest)]
        while at < len(written):
            if found := _SEQUENCE.match(written, at):
                at = found.end()
                if found["final"]:
                    self._control(found["parameters"], found["final"])
            else:
                self._put(written[at])
                at += 1

    def _put(self, character: str) -> None:
        match character:
            case "\n":
                self._to(self._row + 1, self._column)
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(0, self._column - 1)
            case "\t":
                self._column = min(self.columns - 1, (self._column // 8 + 1) * 8)
            case _ if character >= " ":
                self._draw(character)
            case _:
                pass

    def _draw(self, character: str) -> None:
        width = get_character_cell_size(character)
        if width == 0:
            if self._column:
                before, look = self.lines[self._row][self._column - 1]
                self.lines[self._row][self._column - 1] = (before + character, look)
            return
        if self._column + width > self.columns:
            if self._wraps:
                self._to(self._row + 1, 0)
            else:
                self._column = self.columns - width
        line = self.lines[self._row]
        line.extend([_BLANK] * (self._column + width - len(line)))
        # The second cell of a wide character holds nothing.
        line[self._column : self._column + width] = [(character, self._look), ("", self._look)][:width]
        self._column += width

    def _to(self, row: int, column: int) -> None:
        self._row, self._column = max(0, row), max(0, min(column, self.columns))
        while len(self.lines) <= self._row:
            self.lines.append([])

    def _control(self, parameters: str, final: str) -> None:
        if parameters.startswith("?"):
            if parameters == "?7":
                self._wraps = final == "h"
            return
        numbers = [int(number or 0) for number in parameters.split(";")]
        count = numbers[0] or 1
        top = max(0, len(self.lines) - self.rows)
        match final:
            case "A":
                self._to(max(top, self._row - count), self._column)
            case "B":
                self._to(self._row + count, self._column)
            case "C":
                self._to(self._row, min(self.columns - 1, self._column + count))
            case "D":
                self._to(self._row, min(self._column, self.columns - 1) - count)
            case "G":
                self._to(self._row, count - 1)
            case "H":
                self._to(top + count - 1, (numbers[1] or 1) - 1 if len(numbers) > 1 else 0)
            case "J":
                self._erase_screen(numbers[0], top)
            case "K":
                self._erase_line(numbers[0])
            case "m":
                self._style(numbers)
            case _:
                pass

    def _erase_screen(self, what: int, top: int) -> None:
        if what == 0:
            self._erase_line(0)
            del self.lines[self._row + 1 :]
        elif what == 2:
            for line in self.lines[top:]:
                line.clear()

    def _erase_line(self, what: int) -> None:
        line = self.lines[self._row]
        if what == 0:
            del line[self._column :]
        elif what == 1:
            line[: self._column + 1] = [_BLANK] * (self._column + 1)
        else:
            line.clear()

    def _style(self, numbers: list[int]) -> None:
        flags = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}
        given = iter(numbers)
        for number in given:
            if number in (38, 48):  # of 256, or of all: drawn in the terminal's own
                for _ in range(1 if next(given, 0) == 5 else 3):
                    next(given, 0)
            elif number == 0:
                self._look = PLAIN
            elif number in flags:
                self._look = replace(self._look, **{flags[number]: True})
            elif number == 22:
                self._look = replace(self._look, bold=False, dim=False)
            elif number - 20 in flags:
                self._look = replace(self._look, **{flags[number - 20]: False})
            elif 30 <= number <= 37 or 90 <= number <= 97:
                self._look = replace(self._look, colour=number - 30 if number < 40 else number - 82)
            elif number == 39:
                self._look = replace(self._look, colour=None)
