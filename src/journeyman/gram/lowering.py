"""From the parser's syntax tree, which has no errors, to plain data.

The tree is walked with one cursor: that is several times as fast as asking each node for its children. A method that
reads a node finds the cursor on it and leaves it there. Offsets count bytes, and lines are never taken from
``Point.row``, which corrupts the interpreter's memory in tree-sitter 0.26.0.

A comment belongs to the element it stands in, after on the same line, or before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn

from tree_sitter import Language, Node, TreeCursor

from journeyman.gram import data
from journeyman.gram.signature import unescaped

MAX_DEPTH = 100
"""How deeply patterns may nest: more than any honest document, less than Python's stack."""

_MAX_DIGITS = 300
_UNIT = re.compile("[a-zA-Z]+$")
_PLAIN_ARROWS = {
    shape: data.Arrow(shape) for line in "-=~" for shape in (line * 2, f"{line * 2}>", f"<{line * 2}", f"<{line * 2}>")
}
_KINDS = """
    comment annotated_pattern property_annotation subject_pattern subject_pattern_elements relationship_pattern
    pattern_reference labels record record_property map_entry symbol integer decimal hexadecimal octal boolean_literal
    string_literal tagged_string quoted_name array map range
"""


def node_kinds(language: Language) -> SimpleNamespace:
    """The numbers that the grammar gave to its kinds of node, by their names."""
    numbers: dict[str, Any] = {name: language.id_for_node_kind(name, True) for name in _KINDS.split()}
    numbers["bar"] = language.id_for_node_kind("|", False)
    if unknown := [name for name, number in numbers.items() if number is None]:
        raise RuntimeError(f"this release of tree-sitter-gram has no {unknown[0]!r}; install the pinned one")
    names = frozenset(numbers[name] for name in ("symbol", "integer", "quoted_name"))
    bases = {numbers["integer"]: 10, numbers["hexadecimal"]: 16, numbers["octal"]: 8}
    return SimpleNamespace(**numbers, names=names, bases=bases)


class Lowering:
    """A cursor on its way through the tree of one document, and the comments it has passed."""

    def __init__(self, cursor: TreeCursor, kinds: SimpleNamespace, source: data.Source) -> None:
        self._cursor: Any = cursor  # whose node is never None here
        self._kind = kinds
        self._source = source
        # where every character is one byte, the text can be cut without decoding each piece
        self._ascii = source.text if len(source.text) == len(source.encoded) else None
        self._comments: list[str] = []
        """Those read so far that belong to what comes next."""

    def document(self) -> data.Document:
        kind = self._kind
        properties: tuple[data.Property, ...] = ()
        before: tuple[str, ...] = ()
        elements: list[data.Element] = []
        end = 0
        for node in self._children(comments=True):
            number = node.kind_id
            if number == kind.comment:
                self._note(node, elements, end)
            elif number == kind.record:
                properties = self._record(kind.record_property)
                before = self._taken()
            else:
                elements.append(self._annotated(node) if number == kind.annotated_pattern else self._element(node, 0))
                end = node.end_byte
        return data.Document(properties, tuple(elements), before, self._taken(), self._source)

    # -- elements

    def _annotated(self, node: Node) -> data.Annotated:
        cursor = self._cursor
        annotations: list[data.Property] = []
        identity = data.NOBODY
        cursor.goto_first_child()
        for part in self._children():
            if part.kind_id == self._kind.property_annotation:
                cursor.goto_first_child()
                name = self._text(self._next())
                self._next()
                annotations.append(data.Property(name, self._value(self._next()), False, part.start_byte))
                cursor.goto_parent()
            else:
                identity = self._subject(part)
        inner = self._next()
        comments = self._taken()
        element = self._element(inner, 0)
        cursor.goto_parent()
        if element.comments:
            comments, element = comments + element.comments, replace(element, comments=())
        return data.Annotated(element, tuple(annotations), identity, comments, node.start_byte)

    def _element(self, node: Node, depth: int) -> data.Pattern | data.Path:
        if node.kind_id != self._kind.subject_pattern:
            return self._path(node)
        if depth > MAX_DEPTH:
            self._fail(node, "patterns that nest too deeply", f"at most {MAX_DEPTH} levels")
        comments = self._taken()
        subject, elements, own = self._inside(node, depth)
        return data.Pattern(subject, elements, comments + own + self._taken(), node.start_byte)

    def _elements(self, depth: int) -> list[data.Inner]:
        kind = self._kind
        inner: list[data.Inner] = []
        end = 0
        for node in self._children(comments=True):
            number = node.kind_id
            if number == kind.comment:
                self._note(node, inner, end)
            elif node.is_named:
                inner.append(self._reference(node) if number == kind.pattern_reference else self._element(node, depth))
                end = node.end_byte
        return inner

    def _reference(self, node: Node) -> data.Reference:
        self._cursor.goto_first_child()
        identifier = self._identifier(self._cursor.node)
        self._cursor.goto_parent()
        return data.Reference(identifier, self._taken(), node.start_byte)

    def _path(self, node: Node) -> data.Path:
        """A chain. It nests to the right, as deeply as it is long, so it is walked in a loop."""
        cursor, relationship = self._cursor, self._kind.relationship_pattern
        nodes: list[data.Subject] = []
        arrows: list[data.Arrow] = []
        here = node
        while here.kind_id == relationship:
            cursor.goto_first_child()
            nodes.append(self._subject(cursor.node))
            arrows.append(self._arrow(self._next()))
            here = self._next()
        nodes.append(self._subject(here))
        for _ in arrows:
            cursor.goto_parent()
        return data.Path(tuple(nodes), tuple(arrows), self._taken(), node.start_byte)

    def _arrow(self, node: Node) -> data.Arrow:
        plain = _PLAIN_ARROWS.get(self._text(node))
        if plain is not None:
            return plain
        cursor = self._cursor
        subject = self._subject(node)
        cursor.goto_first_child()
        first = self._text(cursor.node)
        cursor.goto_parent()
        cursor.goto_last_child()
        shape = first + self._text(cursor.node)
        cursor.goto_parent()
        return data.Arrow(shape, subject)

    # -- subjects and records

    def _subject(self, node: Node) -> data.Subject:
        return self._inside(node, 0)[0]

    def _inside(self, node: Node, depth: int) -> tuple[data.Subject, tuple[data.Inner, ...], tuple[str, ...]]:
        """What stands between brackets: a subject, elements, and the comments on the subject where elements follow."""
        kind = self._kind
        identifier: data.Identifier | None = None
        labels: tuple[data.Label, ...] = ()
        properties: tuple[data.Property, ...] = ()
        elements: list[data.Inner] = []
        end = 0
        own: tuple[str, ...] = ()
        for inner in self._children(comments=True):
            number = inner.kind_id
            if number == kind.labels:
                labels = self._labels()
            elif number == kind.record:
                properties = self._record(kind.record_property)
            elif number in kind.names:
                identifier = self._identifier(inner)
            elif number == kind.comment:
                self._note(inner, elements, end)
            elif number == kind.bar:
                own = self._taken()
            elif number == kind.subject_pattern_elements:
                elements = self._elements(depth + 1)
                end = inner.end_byte
        return data.Subject(identifier, labels, properties, node.start_byte), tuple(elements), own

    def _labels(self) -> tuple[data.Label, ...]:
        labels: list[data.Label] = []
        typed = False
        for node in self._children():
            if node.is_named:
                labels.append(data.Label(self._name(node), typed))
            else:
                typed = node.end_byte - node.start_byte == 2
        return tuple(labels)

    def _record(self, entry: int) -> tuple[data.Property, ...]:
        cursor = self._cursor
        properties: list[data.Property] = []
        for node in self._children():
            if node.kind_id == entry:
                cursor.goto_first_child()
                name = self._name(cursor.node)
                colon = self._next()
                value = self._value(self._next())
                cursor.goto_parent()
                properties.append(data.Property(name, value, colon.end_byte - colon.start_byte == 2, node.start_byte))
        return tuple(properties)

    def _identifier(self, node: Node) -> data.Identifier:
        return int(self._digits(node)) if node.kind_id == self._kind.integer else self._name(node)

    def _name(self, node: Node) -> str:
        text = self._text(node)
        return text if node.kind_id == self._kind.symbol else self._unquoted(node, text[1:-1])

    # -- values

    def _value(self, node: Node) -> data.Value:
        kind, number = self._kind, node.kind_id
        if number == kind.array:
            return tuple(self._scalar(item) for item in self._children() if item.is_named)
        if number == kind.map:
            return data.Map(self._record(kind.map_entry))
        return self._scalar(node)

    def _scalar(self, node: Node) -> data.Scalar:
        kind, number = self._kind, node.kind_id
        if number == kind.string_literal:
            text = self._text(node)
            return self._fenced(text)[1] if text.startswith("```") else self._unquoted(node, text[1:-1])
        if number == kind.boolean_literal:
            return node.end_byte - node.start_byte == 4
        if number == kind.symbol:
            return data.Symbol(self._text(node))
        if number == kind.tagged_string:
            return self._tagged(node)
        if number == kind.range:
            return self._range()
        return self._number(node)

    def _number(self, node: Node) -> data.Number:
        kind, number = self._kind, node.kind_id
        text = self._digits(node)
        if number in kind.bases:
            return int(text, kind.bases[number])
        if number == kind.decimal:
            return float(text)
        unit = _UNIT.search(text)
        assert unit is not None
        return data.Measurement(int(text[: unit.start()]), unit.group())

    def _digits(self, node: Node) -> str:
        if node.end_byte - node.start_byte > _MAX_DIGITS:
            self._fail(node, "a number that is too long", f"at most {_MAX_DIGITS} characters")
        return self._text(node)

    def _range(self) -> data.Range:
        bounds: list[data.Number | None] = []
        for node in self._children():
            if node.is_named:
                bounds.append(self._number(node))
            elif not bounds:
                bounds.append(None)
        return data.Range(bounds[0], bounds[1] if len(bounds) == 2 else None)

    def _tagged(self, node: Node) -> data.Tagged:
        text = self._text(node)
        if text.startswith("```"):
            return data.Tagged(*self._fenced(text))
        tag, _, rest = text.partition("`")
        # a comment may stand between the tag and its string
        return data.Tagged(tag.partition("//")[0].strip(), self._unquoted(node, rest[:-1]))

    @staticmethod
    def _fenced(text: str) -> tuple[str, str]:
        """A fenced string's tag and its text: all that follows the opening line, to the character."""
        opening, _, body = text[3:-3].partition("\n")
        return opening.partition("//")[0].strip(), body

    def _unquoted(self, node: Node, body: str) -> str:
        if "\n" in body:
            # the grammar lets white space and comments pass before the closing quote
            self._fail(
                node,
                "a string that does not end on its line, or begins with // and so is taken for a comment",
                "a closing quote on the same line; '\\n' for a line break, '/\\/' for '//' at a string's beginning",
            )
        return unescaped(body)

    # -- the cursor, the text and the comments

    def _children(self, *, comments: bool = False) -> Iterator[Node]:
        """The children of the cursor's node, with the cursor on each; comments are kept, or given like the others."""
        cursor, comment = self._cursor, self._kind.comment
        more = cursor.goto_first_child()
        if not more:
            return
        while more:
            node = cursor.node
            if comments or node.kind_id != comment:
                yield node
            else:
                self._comments.append(self._comment(node))
            more = cursor.goto_next_sibling()
        cursor.goto_parent()

    def _next(self) -> Node:
        """The next sibling that is no comment."""
        while self._cursor.goto_next_sibling():
            node: Node = self._cursor.node
            if node.kind_id != self._kind.comment:
                return node
            self._comments.append(self._comment(node))
        raise RuntimeError("the syntax tree lacks a part; is this the pinned release of tree-sitter-gram?")

    def _note(self, node: Node, elements: list[Any], end: int) -> None:
        """Keep a comment that stands among elements, the last of which ends there."""
        if elements and b"\n" not in self._source.encoded[end : node.start_byte]:
            last = elements[-1]
            elements[-1] = replace(last, comments=(*last.comments, self._comment(node)))
        else:
            self._comments.append(self._comment(node))

    def _text(self, node: Node) -> str:
        if self._ascii is not None:
            return self._ascii[node.start_byte : node.end_byte]
        return self._source.encoded[node.start_byte : node.end_byte].decode("utf-8")

    def _comment(self, node: Node) -> str:
        return self._text(node)[2:].strip()

    def _taken(self) -> tuple[str, ...]:
        taken = tuple(self._comments)
        self._comments.clear()
        return taken

    def _fail(self, node: Node, message: str, expected: str) -> NoReturn:
        raise data.GramSyntaxError([self._source.fault(node.start_byte, message, expected)], file=self._source.file)
