"""Everyday tools over one folder: look around, read, search, calculate, tell the time, keep notes.

Files are only read; notes are the one thing written. Nothing outside the folder can be reached. Hidden files,
files with credentials and links to either are read only where a person has allowed exactly that call.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field

from journeyman.core.calls import ToolContext
from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.core.policy import RiskLevel
from journeyman.sensitive.files import in_secret_folder, secret_parts
from journeyman.toolkits import invalid
from journeyman.tools.decorator import tool
from journeyman.tools.rendering import plain
from journeyman.tools.tool import Tool

LARGEST_FILE = 1_000_000
MOST_FILES = 500
_READS: dict[str, Any] = {"risk": RiskLevel.REVERSIBLE, "read_only": True}

Title = Annotated[str, Field(min_length=1, max_length=80, description="The note's title, e.g. 'weekly orders'.")]


class LocalTools:
    """The tools over ``root``; notes are kept as Markdown files in ``notes``, which is made when it is needed."""

    def __init__(self, root: Path, *, notes: Path) -> None:
        self._root = root.resolve()
        self._notes = notes.resolve()

    def tools(self) -> list[Tool[..., Any]]:
        reads: list[Tool[..., Any]] = [self.get_current_time, self.list_files, self.read_file, self.search_text]
        return [*reads, self.calculate_expression, self.write_note, self.delete_note]

    def _asks_for_protected(self, arguments: Mapping[str, Any]) -> bool:
        return self.protects(str(arguments.get("path", arguments.get("folder", "."))))

    @tool(
        **_READS,
        repeatable=True,
        render=lambda arguments, result: (
            f"It is {result['time'][11:16]} on {result['weekday']}, {result['time'][:10]} ({result['timezone']})."
        ),
    )
    def get_current_time(self, timezone: str = "UTC") -> dict[str, str]:
        """Tell the date and time. Use when the answer depends on today's date or the time of day.

        Args:
            timezone: An IANA name, e.g. "Europe/London".
        """
        try:
            zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            recover = "Use an IANA name such as 'Europe/London', or 'UTC'"
            raise invalid("UNKNOWN_TIMEZONE", f"no time zone {timezone!r} is known here", recover) from None
        now = datetime.now(zone)
        return {"time": now.isoformat(timespec="seconds"), "weekday": now.strftime("%A"), "timezone": timezone}

    @tool(**_READS, hazard=_asks_for_protected)
    def list_files(self, folder: str = ".", *, context: ToolContext | None = None) -> dict[str, Any]:
        """List the files below a folder. Use when you need to know which files there are.

        Hidden files are left out.

        Args:
            folder: A folder, relative to the working folder.
        """
        start = self._inside(folder)
        if not start.is_dir():
            recover = "Call list_files without arguments to see what there is"
            raise invalid("NOT_FOUND", f"there is no folder {folder!r}", recover)
        self._check_allowed(start, folder, context)
        files: list[dict[str, Any]] = []
        for file in self._visible(start):
            if file is None:
                continue
            if len(files) == MOST_FILES:
                return {"files": files, "complete": False}
            files.append({"path": self._name(file.path), "bytes": file.about.st_size})
        return {"files": files, "complete": True}

    @tool(**_READS, hazard=_asks_for_protected)
    def read_file(self, path: str, *, context: ToolContext | None = None) -> str:
        """Read a text file. Use when you know which file holds what you need.

        Args:
            path: A file, relative to the working folder.
        """
        place = self._inside(path)
        try:
            folder = self._open_folder(place.parent)
            try:
                file = _found(place, folder)
                self._check_allowed(place, path, context, file.about)
                text = _text(file)
            finally:
                os.close(folder)
        except OSError:
            raise invalid("NOT_FOUND", f"there is no file {path!r}", "Use a path that list_files shows") from None
        if text is None:
            message = f"{path!r} is not a text file of at most {LARGEST_FILE:,} bytes"
            raise invalid("NOT_TEXT", message, "Choose another file, or look for what you need with search_text")
        return text

    @tool(**_READS, hazard=_asks_for_protected)
    def search_text(
        self,
        text: Annotated[str, Field(min_length=1)],
        folder: str = ".",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
        *,
        context: ToolContext,
    ) -> dict[str, Any]:
        """Find the lines that contain a text. Use when you do not know which file holds what you need.

        Hidden files, files with credentials, and links are left out; "skipped" says how many. Upper and lower case are
        the same.

        Args:
            text: What to look for, literally.
            folder: Where to look, relative to the working folder.
            limit: How many lines to give at most.
        """
        wanted, start = text.casefold(), self._inside(folder)
        self._check_allowed(start, folder, context)
        result: dict[str, Any] = {"lines": [], "complete": True, "skipped": 0}
        for file in self._visible(start):
            if context.cancelled:
                break
            if file is None or self._protected(file.path, file.about):
                result["skipped"] += 1
                continue
            for number, line in enumerate((_text(file) or "").splitlines(), start=1):
                if wanted in line.casefold():
                    if len(result["lines"]) == limit:
                        return result | {"complete": False}
                    result["lines"].append({"path": self._name(file.path), "line": number, "text": line.strip()[:300]})
        return result

    @tool(
        **_READS,
        render=lambda arguments, result: f"{plain(arguments['expression'])} = **{result}**",
    )
    def calculate_expression(self, expression: Annotated[str, Field(min_length=1, max_length=500)]) -> int | float:
        """Work out an arithmetic expression. Use for every calculation, however small.

        Args:
            expression: Numbers, parentheses and + - * / // % **, e.g. "(19.90 + 42.50) * 3".
        """
        try:
            return _evaluate(expression)
        except ValueError as error:
            recover = "Write numbers, parentheses and + - * / // % ** only"
            raise invalid("NOT_ARITHMETIC", str(error), recover) from None

    @tool(
        risk=RiskLevel.REVERSIBLE,
        render=lambda arguments, result: f"Wrote the note *{plain(result['title'])}* to `{result['path']}`.",
    )
    def write_note(self, title: Title, text: str) -> dict[str, str]:
        """Keep a new note. Use when the user wants something written down.

        An existing note is never overwritten.

        Args:
            text: What to write, as Markdown.
        """
        path = self._note(title)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise invalid("NOTE_EXISTS", f"there is a note {title!r} already", "Choose another title") from None
        return {"title": title, "path": self._name(path)}

    def _about_note(self, arguments: dict[str, Any], context: ToolContext) -> str:
        note = self._note(arguments["title"])
        with os.fdopen(os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
            return f"Delete the note “{arguments['title']}”, which begins: {file.read(100)}"

    @tool(
        risk=RiskLevel.IRREVERSIBLE,
        describe=_about_note,
        render=lambda arguments, result: f"Deleted the note *{plain(result['deleted'])}*.",
    )
    def delete_note(self, title: Title) -> dict[str, str]:
        """Delete a note for good. Use when the user asks for exactly that."""
        path = self._note(title)
        try:
            path.unlink()
        except FileNotFoundError:
            known = ", ".join(repr(file.stem) for file in sorted(self._notes.glob("*.md"))[:20]) or "none"
            message = f"there is no note {title!r} (known: {known})"
            raise invalid("NOT_FOUND", message, "Use the title of a known note") from None
        return {"deleted": title}

    def protects(self, path: str) -> bool:
        """Whether a person must agree before this path is read, listed or searched; what is refused anyway is not."""
        try:
            return self._protected(self._inside(path))
        except ToolError:
            return False

    def _protected(self, place: Path, about: os.stat_result | None = None) -> bool:
        """Whether a place, links resolved, is hidden or holds credentials; or may do so under another of its names."""
        names = place.relative_to(self._root).parts
        if any(name.startswith(".") for name in names) or secret_parts(names):
            return True
        if in_secret_folder(place.parts):
            return True
        try:
            about = about or place.lstat()
        except OSError:
            return False
        return stat.S_ISREG(about.st_mode) and about.st_nlink > 1

    def _check_allowed(
        self, place: Path, path: str, context: ToolContext | None, about: os.stat_result | None = None
    ) -> None:
        """Refuse what a person was not asked about: a link may have changed since the call was graded."""
        allowed = context is not None and context.risk is RiskLevel.IRREVERSIBLE
        if not allowed and self._protected(place, about):
            raise ToolError(
                "PROTECTED_FILE",
                f"{path!r} is hidden or may hold credentials, and nobody has allowed it to be read",
                category=ErrorCategory.PERMISSION,
                recover_action="Do without it, or ask the user for what you need from it",
            )

    def _inside(self, path: str) -> Path:
        """The path with links resolved; refused where it is not below the root."""
        try:
            place = (self._root / path).resolve()
        except (OSError, ValueError, RuntimeError):
            raise invalid("NOT_FOUND", f"{path!r} is not a path", "Use a path that list_files shows") from None
        if not place.is_relative_to(self._root):
            raise ToolError(
                "OUTSIDE_FOLDER",
                f"{path!r} is outside the working folder",
                category=ErrorCategory.PERMISSION,
                recover_action="Use a path below the working folder; list_files shows them",
            )
        return place

    def _open_folder(self, folder: Path) -> int:
        """A descriptor of a folder whose links were resolved. Raises OSError where a step of it is a link by now."""
        descriptor = os.open(self._root, _FOLDER)
        for step in folder.relative_to(self._root).parts:
            try:
                inner = os.open(step, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor

    def _visible(self, folder: Path) -> Iterator[_Found | None]:
        """The regular files below a folder, in order; None for each link, hidden file or hidden folder left out.

        What was found can be read until the next is asked for.
        """
        try:
            top = self._open_folder(folder)
        except OSError:
            return
        try:
            for parent, folders, files, here in os.fwalk(".", dir_fd=top):
                hidden = [name for name in folders if name.startswith(".")]
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                yield from [None] * (len(hidden) + sum(_is_link(name, here) for name in folders))
                for name in sorted(files):
                    if name.startswith(".") or _is_link(name, here):
                        yield None
                        continue
                    with contextlib.suppress(OSError):  # no regular file, or gone meanwhile
                        yield _found(folder / parent / name, here)
        finally:
            os.close(top)

    def _note(self, title: str) -> Path:
        if not re.fullmatch(r"[\w][\w .,'()-]*", title):
            recover = "Use letters, digits, spaces and . , ' ( ) - only, a letter or digit first"
            raise invalid("INVALID_TITLE", f"the title {title!r} cannot be the name of a file", recover)
        return self._notes / f"{title}.md"

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self._root).replace(os.sep, "/")


_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class _Found(NamedTuple):
    """A regular file: its path, what it is, and the descriptor of the folder it is in."""

    path: Path
    about: os.stat_result
    folder: int


def _found(path: Path, folder: int) -> _Found:
    """Raises OSError where it is no regular file: reading a pipe or a device might never end."""
    about = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(about.st_mode):
        raise FileNotFoundError(path.name)
    return _Found(path, about, folder)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _text(seen: _Found) -> str | None:
    """A file's text; None where it is too large, not text, or another file than the one that was looked at."""
    try:
        descriptor = os.open(seen.path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=seen.folder)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            same = os.path.samestat(about, seen.about) and about.st_nlink == seen.about.st_nlink
            if not same or about.st_size > LARGEST_FILE:
                return None
            text = file.read(LARGEST_FILE + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


# --- arithmetic, by walking the syntax tree: numbers and operators, no names, no calls, bounded size

Number = int | float

MOST_BITS = 4_096
"""The size of an integer: 9**9**9 would take all memory there is."""

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def _evaluate(expression: str) -> Number:
    """The value of an arithmetic expression. Raises ValueError with the reason for the model."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{expression!r} is not an arithmetic expression") from error
    try:
        value = _value(tree.body)
    except ZeroDivisionError as error:
        raise ValueError(f"{expression!r} divides by zero") from error
    except OverflowError as error:
        raise ValueError(f"{expression!r} is too large") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{expression!r} has no finite value")
    return value


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("True and False are not numbers")
        case ast.Constant(value=int() | float() as number):
            return _bounded(number)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _bounded(_BINARY[type(sign)](_value(left), _value(right)))
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is not a number or one of + - * / // % **")


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MOST_BITS:
        raise OverflowError
    value = base**exponent
    if isinstance(value, complex):
        raise ValueError(f"{base}**{exponent} is not a real number")
    return _bounded(value)


def _bounded(value: Number) -> Number:
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise OverflowError
    return value
