"""From the parser's syntax tree, which has no errors, to plain data: elements and documents.

A comment belongs to the element it stands in, after on the same line, or before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tree_sitter import Node

from journeyman.gram.data import (
    NOBODY,
    Annotated,
    Arrow,
    Document,
    Element,
    Identifier,
    Label,
    Path,
    Pattern,
    Property,
    Reference,
    Subject,
)
from journeyman.gram.walking import Walker

MAX_DEPTH = 100
"""How deeply patterns may nest: more than any honest document, less than Python's stack."""

_PLAIN_ARROWS = {
    shape: Arrow(shape) for line in "-=~" for shape in (line * 2, f"{line * 2}>", f"<{line * 2}", f"<{line * 2}>")
}


class Lowering(Walker):
    """One document on its way to data."""

    def document(self) -> Document:
        cursor, kind = self._cursor, self._kind
        properties: tuple[Property, ...] = ()
        before: tuple[str, ...] = ()
        elements: list[Element] = []
        end = 0
        more = cursor.goto_first_child()
        while more:
            node = cursor.node
            number = node.kind_id
            if number == kind.comment:
                self._note(node, elements, end)
            elif number == kind.record:
                properties = self._record(kind.record_property)
                before = self._taken()
            else:
                elements.append(self._annotated(node) if number == kind.annotated else self._element(node, 0))
                end = node.end_byte
            more = cursor.goto_next_sibling()
        return Document(properties, tuple(elements), before, self._taken(), self._source)

    # -- elements

    def _annotated(self, node: Node) -> Annotated:
        cursor, kind = self._cursor, self._kind
        annotations: list[Property] = []
        identity = NOBODY
        cursor.goto_first_child()
        more = cursor.goto_first_child()
        while more:
            part = cursor.node
            if part.kind_id == kind.property_annotation:
                annotations.append(self._annotation(part))
            elif part.kind_id == kind.comment:
                self._comments.append(self._comment(part))
            else:
                identity = self._subject(part)
            more = cursor.goto_next_sibling()
        cursor.goto_parent()
        inner = self._next()
        comments = self._taken()
        element = self._element(inner, 0)
        cursor.goto_parent()
        if element.comments:
            comments, element = comments + element.comments, replace(element, comments=())
        return Annotated(element, tuple(annotations), identity, comments, node.start_byte)

    def _annotation(self, node: Node) -> Property:
        self._cursor.goto_first_child()
        name = self._text(self._next())
        self._next()
        value = self._value(self._next())
        self._cursor.goto_parent()
        return Property(name, value, False, node.start_byte)

    def _element(self, node: Node, depth: int) -> Pattern | Path:
        if node.kind_id != self._kind.pattern:
            return self._path(node)
        if depth > MAX_DEPTH:
            self._fail(node, "patterns that nest too deeply", f"at most {MAX_DEPTH} levels")
        comments = self._taken()
        subject, elements, own = self._inside(node, depth)
        return Pattern(subject, elements, comments + own + self._taken(), node.start_byte)

    def _elements(self, depth: int) -> list[Pattern | Path | Reference]:
        cursor, kind = self._cursor, self._kind
        found: list[Pattern | Path | Reference] = []
        end = 0
        more = cursor.goto_first_child()
        while more:
            node = cursor.node
            number = node.kind_id
            if number == kind.comment:
                self._note(node, found, end)
            elif node.is_named:
                found.append(self._reference(node) if number == kind.reference else self._element(node, depth))
                end = node.end_byte
            more = cursor.goto_next_sibling()
        cursor.goto_parent()
        return found

    def _reference(self, node: Node) -> Reference:
        self._cursor.goto_first_child()
        identifier = self._identifier(self._cursor.node)
        self._cursor.goto_parent()
        return Reference(identifier, self._taken(), node.start_byte)

    def _path(self, node: Node) -> Path:
        """A chain. It nests to the right, as deeply as it is long, so it is walked in a loop."""
        cursor, relationship = self._cursor, self._kind.relationship
        nodes: list[Subject] = []
        arrows: list[Arrow] = []
        here = node
        while here.kind_id == relationship:
            cursor.goto_first_child()
            nodes.append(self._subject(cursor.node))
            arrows.append(self._arrow(self._next()))
            here = self._next()
        nodes.append(self._subject(here))
        for _ in arrows:
            cursor.goto_parent()
        return Path(tuple(nodes), tuple(arrows), self._taken(), node.start_byte)

    def _arrow(self, node: Node) -> Arrow:
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
        return Arrow(shape, subject)

    # -- subjects and records

    def _subject(self, node: Node) -> Subject:
        return self._inside(node, 0)[0]

    def _inside(
        self, node: Node, depth: int
    ) -> tuple[Subject, tuple[Pattern | Path | Reference, ...], tuple[str, ...]]:
        """What stands between brackets: a subject, elements, and the comments on the subject where elements follow."""
        cursor, kind = self._cursor, self._kind
        identifier: Identifier | None = None
        labels: tuple[Label, ...] = ()
        properties: tuple[Property, ...] = ()
        elements: list[Pattern | Path | Reference] = []
        end = 0
        own: tuple[str, ...] = ()
        cursor.goto_first_child()
        while cursor.goto_next_sibling():
            inner = cursor.node
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
            elif number == kind.elements:
                elements = self._elements(depth + 1)
                end = inner.end_byte
        cursor.goto_parent()
        return Subject(identifier, labels, properties, node.start_byte), tuple(elements), own

    def _note(self, node: Node, elements: list[Any], end: int) -> None:
        """Keep a comment that stands among elements, the last of which ends there."""
        if elements and b"\n" not in self._source.encoded[end : node.start_byte]:
            last = elements[-1]
            elements[-1] = replace(last, comments=(*last.comments, self._comment(node)))
        else:
            self._comments.append(self._comment(node))
