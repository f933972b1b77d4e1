"""What a docstring says about a function, its parameters and its result, in Google, NumPy or Sphinx style.

The sections are found here, line by line, so that everything else keeps its author's words and layout; the inside of
a section is read by griffe, which is imported only when there is a section to read. Signatures are not looked at.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

_KINDS = {
    **dict.fromkeys(
        ("args", "arguments", "params", "parameters", "keyword args", "keyword arguments", "other parameters"),
        "parameters",
    ),
    **dict.fromkeys(("return", "returns"), "returns"),
    **dict.fromkeys(("raise", "raises", "exceptions", "yield", "yields"), "dropped"),
}
_FIELD_KINDS = {
    **dict.fromkeys(("param", "parameter", "arg", "argument", "key", "keyword", "type"), "parameters"),
    **dict.fromkeys(("return", "returns"), "returns"),
    **dict.fromkeys(("rtype", "raise", "raises", "except", "exception", "yield", "yields", "ytype"), "dropped"),
}
_GOOGLE = re.compile(r"([A-Za-z ]+):\s*$")
_UNDERLINE = re.compile(r"-{3,}\s*$")
_SPHINX = re.compile(r":(\w+)(?:\s[^:]*)?:(?:\s|$)")


@dataclass(frozen=True)
class Documentation:
    """A docstring, taken apart."""

    description: str
    """Everything but the sections about parameters, results and exceptions."""
    parameters: dict[str, str]
    returns: str | None


@dataclass
class _Section:
    kind: str
    """parameters, returns, dropped (known and of no use here), or kept (everything else)."""
    style: str = ""
    lines: list[str] = field(default_factory=list)


def read_docstring(text: str | None) -> Documentation:
    """Take a docstring apart. What it names is not compared with any signature."""
    kept: list[str] = []
    parameters: dict[str, str] = {}
    returns: list[str] = []
    for section in _sections(inspect.cleandoc(text or "").splitlines()):
        if section.kind == "kept":
            kept += section.lines
        elif section.kind == "parameters":
            parameters |= _parameters(section)
        elif section.kind == "returns":
            returns.append(_returns(section))
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Documentation(description, parameters, "\n".join(filter(None, returns)) or None)


def _sections(lines: list[str]) -> Iterator[_Section]:
    current = _Section("kept")
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        opened = _opens(line, following)
        if opened is None and current.kind != "kept" and _ends(current, line):
            opened = _Section("kept")
        if opened is not None:
            yield current
            current = opened
        current.lines.append(line)
    yield current


def _opens(line: str, following: str) -> _Section | None:
    """The section that begins at this line, if one does."""
    if _UNDERLINE.match(following) and line.strip():
        return _Section(_KINDS.get(line.strip().lower(), "kept"), "numpy")
    if (match := _GOOGLE.match(line)) and (not following.strip() or following[0].isspace()):
        kind = _KINDS.get(match[1].lower())
        return _Section(kind, "google") if kind else None
    if match := _SPHINX.match(line):
        kind = _FIELD_KINDS.get(match[1])
        return _Section(kind, "sphinx") if kind else None
    return None


def _ends(section: _Section, line: str) -> bool:
    """Google and Sphinx sections end where the indentation does; NumPy ones at the next title."""
    return section.style != "numpy" and bool(line.strip()) and not line[0].isspace()


def _parse(section: _Section) -> list[tuple[str, str]]:
    """The entries of a section, as (name, description)."""
    import griffe

    parser = {"google": griffe.parse_google, "numpy": griffe.parse_numpy, "sphinx": griffe.parse_sphinx}[section.style]
    text = "\n".join(section.lines)
    if section.style == "google":  # griffe knows fewer titles, and no blank line after them
        text = f"{section.kind.capitalize()}:\n" + "\n".join(section.lines[1:]).lstrip("\n")
    # To griffe, a section is one only after a summary line.
    parsed = parser(griffe.Docstring(f"-\n\n{text}"), warnings=False)
    return [
        (str(getattr(entry, "name", "") or ""), inspect.cleandoc(entry.description))
        for part in parsed
        if isinstance(part.value, list)
        for entry in part.value
        if hasattr(entry, "description")
    ]


def _parameters(section: _Section) -> dict[str, str]:
    return {name.strip("`*- "): text for name, text in _parse(section) if text}


def _returns(section: _Section) -> str:
    entries = _parse(section)
    if len(entries) == 1 and entries[0][1]:
        return entries[0][1]
    # Several entries, or a sentence that was taken for several: as the author wrote it.
    body = section.lines[1:] if section.style == "google" else section.lines[2:]
    return textwrap.dedent("\n".join(body)).strip()
