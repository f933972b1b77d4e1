"""The syntax tree's smaller parts, from names to records: what stands inside an element. `lowering` reads the elements.

The tree is walked with one cursor: that is several times as fast as asking each node for its children. A method that
reads a node finds the cursor on it and leaves it there. Lines are counted in bytes, never with ``Point.row``, which
corrupts the interpreter's memory in tree-sitter 0.26.0.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from tree_sitter import Language, Node, TreeCursor

from journeyman.gram.data import (
    Identifier,
    Label,
    Map,
    Measurement,
    Number,
    Property,
    Range,
    Scalar,
    Source,
    Symbol,
    Tagged,
    Value,
)
from journeyman.gram.errors import Fault, GramSyntaxError

_MAX_DIGITS = 300

_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNIT = re.compile("[a-zA-Z]+$")


class Kinds:
    """The numbers that the grammar gave to its kinds of node."""

    def __init__(self, language: Language) -> None:
        def number(name: str, *, named: bool = True) -> int:
            found = language.id_for_node_kind(name, named)
            if found is None:
                raise RuntimeError(f"this release of tree-sitter-gram has no {name!r}; install the pinned one")
            return found

        self.bar = number("|", named=False)
        self.comment = number("comment")
        self.annotated = number("annotated_pattern")
        self.property_annotation = number("property_annotation")
        self.pattern = number("subject_pattern")
        self.elements = number("subject_pattern_elements")
        self.relationship = number("relationship_pattern")
        self.reference = number("pattern_reference")
        self.labels = number("labels")
        self.record = number("record")
        self.record_property = number("record_property")
        self.map_entry = number("map_entry")
        self.symbol = number("symbol")
        self.integer = number("integer")
        self.decimal = number("decimal")
        self.hexadecimal = number("hexadecimal")
        self.octal = number("octal")
        self.boolean = number("boolean_literal")
        self.string = number("string_literal")
        self.tagged = number("tagged_string")
        self.array = number("array")
        self.map = number("map")
        self.range = number("range")
        self.names = frozenset({self.symbol, self.integer, number("quoted_name")})


class Walker:
    """A cursor on its way through a tree without errors, and the comments it has passed."""

    def __init__(self, cursor: TreeCursor, kinds: Kinds, source: Source) -> None:
        self._cursor: Any = cursor  # whose node is never None here
        self._kind = kinds
        self._source = source
        # where every character is one byte, the text can be cut without decoding each piece
        self._ascii = source.text if len(source.text) == len(source.encoded) else None
        self._comments: list[str] = []
        """Those read so far that belong to what comes next."""

    def _labels(self) -> tuple[Label, ...]:
        cursor, comment = self._cursor, self._kind.comment
        labels: list[Label] = []
        typed = False
        more = cursor.goto_first_child()
        while more:
            node = cursor.node
            if not node.is_named:
                typed = node.end_byte - node.start_byte == 2
            elif node.kind_id != comment:
                labels.append(Label(self._name(node), typed))
            else:
                self._comments.append(self._comment(node))
            more = cursor.goto_next_sibling()
        cursor.goto_parent()
        return tuple(labels)

    def _record(self, entry: int) -> tuple[Property, ...]:
        cursor, comment = self._cursor, self._kind.comment
        found: list[Property] = []
        cursor.goto_first_child()
        while cursor.goto_next_sibling():
            node = cursor.node
            number = node.kind_id
            if number == entry:
                cursor.goto_first_child()
                name = self._name(cursor.node)
                colon = self._next()
                value = self._value(self._next())
                cursor.goto_parent()
                found.append(Property(name, value, colon.end_byte - colon.start_byte == 2, node.start_byte))
            elif number == comment:
                self._comments.append(self._comment(node))
        cursor.goto_parent()
        return tuple(found)

    def _identifier(self, node: Node) -> Identifier:
        return self._integer(node, 10) if node.kind_id == self._kind.integer else self._name(node)

    def _name(self, node: Node) -> str:
        text = self._text(node)
        return text if node.kind_id == self._kind.symbol else self._unquoted(node, text[1:-1])

    # -- values

    def _value(self, node: Node) -> Value:
        kind, number = self._kind, node.kind_id
        if number == kind.array:
            return self._array()
        if number == kind.map:
            return Map(self._record(kind.map_entry))
        return self._scalar(node)

    def _array(self) -> tuple[Scalar, ...]:
        cursor, comment = self._cursor, self._kind.comment
        found: list[Scalar] = []
        cursor.goto_first_child()
        while cursor.goto_next_sibling():
            node = cursor.node
            if node.kind_id == comment:
                self._comments.append(self._comment(node))
            elif node.is_named:
                found.append(self._scalar(node))
        cursor.goto_parent()
        return tuple(found)

    def _scalar(self, node: Node) -> Scalar:
        kind, number = self._kind, node.kind_id
        if number == kind.string:
            text = self._text(node)
            return self._fenced(text)[1] if text.startswith("```") else self._unquoted(node, text[1:-1])
        if number == kind.boolean:
            return node.end_byte - node.start_byte == 4
        if number == kind.symbol:
            return Symbol(self._text(node))
        if number == kind.tagged:
            return self._tagged(node)
        if number == kind.range:
            return self._range()
        return self._number(node)

    def _number(self, node: Node) -> Number:
        kind, number = self._kind, node.kind_id
        if number == kind.integer:
            return self._integer(node, 10)
        if number == kind.hexadecimal:
            return self._integer(node, 16)
        if number == kind.octal:
            return self._integer(node, 8)
        text = self._digits(node)
        if number == kind.decimal:
            return float(text)
        unit = _UNIT.search(text)
        assert unit is not None
        return Measurement(int(text[: unit.start()]), unit.group())

    def _integer(self, node: Node, base: int) -> int:
        return int(self._digits(node), base)

    def _digits(self, node: Node) -> str:
        if node.end_byte - node.start_byte > _MAX_DIGITS:
            self._fail(node, "a number that is too long", f"at most {_MAX_DIGITS} characters")
        return self._text(node)

    def _range(self) -> Range:
        cursor = self._cursor
        bounds: list[Number | None] = []
        more = cursor.goto_first_child()
        while more:
            node = cursor.node
            if node.kind_id == self._kind.comment:
                self._comments.append(self._comment(node))
            elif node.is_named:
                bounds.append(self._number(node))
            elif not bounds:
                bounds.append(None)
            more = cursor.goto_next_sibling()
        cursor.goto_parent()
        return Range(bounds[0], bounds[1] if len(bounds) == 2 else None)

    def _tagged(self, node: Node) -> Tagged:
        text = self._text(node)
        if text.startswith("```"):
            return Tagged(*self._fenced(text))
        tag, _, rest = text.partition("`")
        # a comment may stand between the tag and its string
        return Tagged(tag.partition("//")[0].strip(), self._unquoted(node, rest[:-1]))

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
        if "\\" in body:
            return _ESCAPE.sub(lambda found: _ESCAPED.get(found.group(1), found.group(1)), body)
        return body

    # -- the cursor, the text and the comments

    def _next(self) -> Node:
        """The next sibling that is no comment."""
        while self._cursor.goto_next_sibling():
            node: Node = self._cursor.node
            if node.kind_id != self._kind.comment:
                return node
            self._comments.append(self._comment(node))
        raise RuntimeError("the syntax tree lacks a part; is this the pinned release of tree-sitter-gram?")

    def _text(self, node: Node) -> str:
        if self._ascii is not None:
            return self._ascii[node.start_byte : node.end_byte]
        return self._source.encoded[node.start_byte : node.end_byte].decode("utf-8")

    def _comment(self, node: Node) -> str:
        return self._text(node)[2:].strip()

    def _taken(self) -> tuple[str, ...]:
        if not self._comments:
            return ()
        taken = tuple(self._comments)
        self._comments.clear()
        return taken

    def _fail(self, node: Node, message: str, expected: str) -> NoReturn:
        line, column = self._source.position(node.start_byte)
        fault = Fault(line, column, message, expected, self._source.line(line))
        raise GramSyntaxError([fault], file=self._source.file)
