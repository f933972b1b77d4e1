"""From a document to its canonical text: one spelling for each thing that can be said.

Text is in double quotes, or fenced where it has several lines; names are bare where they can be, else in backticks.
What fits on a line stays on it; elements that hold others have a line each. Comments stand before what they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import assert_never

from journeyman.gram import data
from journeyman.gram.signature import SYMBOL, quoted

WIDTH = 100

_UNSPEAKABLE = re.compile("[\0\ud800-\udfff]")
_ARROW = re.compile(r"(<?[-=~])([-=~]>?)")


def dumps(document: data.Document) -> str:
    """The document's canonical text; parsing it gives the document back.

    Raises ValueError for data that gram cannot say, which no parsed document holds.
    """
    blocks: list[str] = []
    if document.properties:
        blocks.append("\n".join([*_comments(document.comments, ""), _record(document.properties, "", 0)]))
    elif document.comments:
        raise ValueError("comments before a document's record need a record; put them on the first element")
    blocks += ["\n".join(_element(element, "")) for element in document.elements]
    if document.ending:
        blocks.append("\n".join(_comments(document.ending, "")))
    # a blank line keeps a comment at the end from being taken for the last element's
    return "\n".join(f"{block}\n" for block in blocks)


def path_text(path: data.Path) -> str:
    """A path on one line, whatever its strings hold."""
    return "".join(_steps(path))


# -- elements


def _element(element: data.Element | data.Reference, indent: str) -> list[str]:
    """An element's lines; the first are its comments."""
    lines = _comments(element.comments, indent)
    match element:
        case data.Annotated():
            lines += [_annotations(element), *_element(element.element, indent)]
        case data.Pattern():
            lines += _pattern(element, indent)
        case data.Path():
            line = indent + path_text(element)
            lines += [line] if len(line) <= WIDTH else [indent + f"\n{indent}  ".join(_steps(element))]
        case data.Reference():
            lines.append(indent + _identifier(element.identifier))
        case _:
            assert_never(element)
    return lines


def _comments(comments: Iterable[str], indent: str) -> list[str]:
    lines = []
    for comment in comments:
        if "\n" in comment or _UNSPEAKABLE.search(comment):
            raise ValueError(f"a comment has one line of text, this one is {comment!r}")
        lines.append(f"{indent}// {comment}".rstrip())
    return lines


def _annotations(annotated: data.Annotated) -> str:
    parts = []
    if annotated.identity.identifier is not None or annotated.identity.labels:
        parts.append("@@" + _subject(annotated.identity, "", 0))
    parts += [f"@{_symbol(item.name)}({_value(item.value)})" for item in annotated.annotations]
    return "\n".join(parts)


def _pattern(pattern: data.Pattern, indent: str) -> list[str]:
    if not pattern.elements:
        return [f"{indent}[{_subject(pattern.subject, indent, 2)}]"]
    subject = _subject(pattern.subject, indent, 3)
    opening = f"{indent}[{subject} |" if subject else f"{indent}[|"
    blocks = [_element(element, f"{indent}  ") for element in pattern.elements]
    # a comment needs its line, and a pattern within a pattern reads better on its own
    nested = any(isinstance(each, data.Pattern) for each in pattern.elements)
    if not nested and all(len(block) == 1 for block in blocks):
        line = f"{opening} {', '.join(block[0].strip() for block in blocks)}]"
        if "\n" not in line and len(line) <= WIDTH:
            return [line]
    lines = [opening]
    for block in blocks[:-1]:
        lines += [*block[:-1], f"{block[-1]},"]
    return [*lines, *blocks[-1], f"{indent}]"]


def _steps(path: data.Path) -> list[str]:
    """A path's first node, and each further one with the arrow that leads to it."""
    further = zip(path.arrows, path.nodes[1:], strict=True)
    return [_node(path.nodes[0]), *(_arrow(arrow) + _node(node) for arrow, node in further)]


def _node(node: data.Subject) -> str:
    return f"({_subject(node, '', None)})"


def _arrow(arrow: data.Arrow) -> str:
    halves = _ARROW.fullmatch(arrow.shape)
    if halves is None or halves[1][-1] != halves[2][0]:
        raise ValueError(f"{arrow.shape!r} is no arrow; write e.g. '-->', '<==' or '~~'")
    inside = _subject(arrow.subject, "", None)
    return f"{halves[1]}[{inside}]{halves[2]}" if inside else arrow.shape


# -- subjects and records


def _subject(subject: data.Subject, indent: str, around: int | None) -> str:
    """A subject, with its record over several lines where ``around`` characters more would be too many for one."""
    text = "" if subject.identifier is None else _identifier(subject.identifier)
    text += "".join(f"{'::' if label.typed else ':'}{_name(label.name)}" for label in subject.labels)
    if not subject.properties:
        return text
    used = None if around is None else len(indent) + len(text) + around
    return f"{text} {_record(subject.properties, indent, used)}".lstrip()


def _record(properties: tuple[data.Property, ...], indent: str, used: int | None) -> str:
    fences = used is not None
    entries = [
        f"{_key(item.name)}{'::' if item.typed else ':'} {_value(item.value, fences=fences)}" for item in properties
    ]
    line = f"{{{', '.join(entries)}}}"
    if used is None or ("\n" not in line and used + len(line) <= WIDTH):
        return line
    separator = f",\n{indent}  "
    return f"{{\n{indent}  {separator.join(entries)}\n{indent}}}"


def _identifier(identifier: data.Identifier) -> str:
    return _name(identifier) if isinstance(identifier, str) else str(int(identifier))


def _name(name: str, *, quote: str = "`") -> str:
    return name if SYMBOL.fullmatch(name) else _quoted(name, quote)


def _key(name: str) -> str:
    return _name(name, quote='"')


def _symbol(name: str) -> str:
    if not SYMBOL.fullmatch(name):
        raise ValueError(f"{name!r} is no gram symbol: letters, digits, '_', '.', '-' and '@', not a digit first")
    return name


# -- values


def _value(value: data.Value, *, fences: bool = True) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _decimal(value)
        case str():
            return f"```\n{value}```" if fences and _fenceable(value) else _quoted(value, '"')
        case data.Symbol():
            return _symbol(value.name)
        case data.Tagged():
            tag = _symbol(value.tag)
            fenced = fences and _fenceable(value.text)
            return f"```{tag}\n{value.text}```" if fenced else tag + _quoted(value.text, "`")
        case data.Measurement():
            return f"{value.amount}{value.unit}"
        case data.Range():
            lower, upper = ("" if bound is None else _value(bound) for bound in (value.lower, value.upper))
            return f"{lower}{'..' if lower and upper else '...'}{upper}"
        case data.Map():
            entries = [f"{_key(item.name)}: {_value(item.value, fences=fences)}" for item in value.entries]
            return f"{{{', '.join(entries)}}}"
        case tuple():
            if not value:
                raise ValueError("gram has no empty array")
            return f"[{', '.join(_value(item, fences=fences) for item in value)}]"
        case _:
            assert_never(value)


def _decimal(value: float) -> str:
    """A number without an exponent, which gram does not know."""
    text = format(Decimal(repr(value)), "f")
    if not text.lstrip("-")[0].isdigit():
        raise ValueError(f"gram has no number {value!r}")
    return text if "." in text else f"{text}.0"


def _fenceable(text: str) -> bool:
    """Whether a text reads better, and unharmed, between fences."""
    if "\n" not in text or "\r" in text or "```" in text or text.endswith("`") or _UNSPEAKABLE.search(text):
        return False
    return not text.lstrip().startswith("//")


def _quoted(text: str, quote: str) -> str:
    if _UNSPEAKABLE.search(text):
        raise ValueError(f"gram cannot hold NUL or half a character, as in {text!r}; JSON in a tagged string can")
    return quoted(text, quote)
