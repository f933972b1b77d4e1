"""What can be wrong with a gram document: text that is no gram, and gram that describes no agent or tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.core.errors import JourneymanError

_WIDTH = 100
"""How much of a line is shown around an error."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and where; line and column count from 1, columns in characters."""

    line: int
    column: int
    message: str
    expected: str
    source: str = ""
    """The whole line, for people to see."""

    def __str__(self) -> str:
        told = f"{self.line}:{self.column}: {self.message}; expected {self.expected}"
        return f"{told}\n{_caret(self.source, self.column)}" if self.source else told


class GramError(JourneymanError, ValueError):
    """A document cannot be used. All that was found wrong is in ``errors``; the other attributes are the first's."""

    def __init__(self, errors: Sequence[Fault], *, file: str | None = None) -> None:
        first = errors[0]
        self.file = file
        self.errors = tuple(errors)
        self.line = first.line
        self.column = first.column
        self.expected = first.expected
        prefix = f"{file}:" if file is not None else ""
        super().__init__("\n".join(f"{prefix}{fault}" for fault in errors))


class GramSyntaxError(GramError):
    """A text is not gram."""


class GramDocumentError(GramError):
    """A text is gram, but does not describe the agents or tools that were asked for."""


def _caret(line: str, column: int) -> str:
    start = max(0, column - 1 - _WIDTH * 3 // 4)
    shown = line[start : start + _WIDTH]
    # a tab before the caret keeps both lines aligned wherever tabs stop
    indent = "".join("\t" if character == "\t" else " " for character in shown[: column - 1 - start])
    return f"    {shown}\n    {indent}^"
