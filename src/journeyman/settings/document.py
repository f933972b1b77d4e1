"""A YAML text as plain values, with the position of each. Budgets hold whatever the text says.

Scalars are read as in YAML 1.2, where ``no`` is a text and ``08:30`` is no number. Tags are refused, keys are texts,
and none may stand twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from journeyman.settings.problems import Key

MOST_BYTES = 1_000_000
MOST_DEPTH = 32
MOST_NODES = 50_000
"""Of keys, values and items, with aliases written out: ten lines of aliases of aliases could stand for billions."""

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,18}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,2})?")
_MERGE = "<<"
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}


class Position(NamedTuple):
    """Both from 1 on, as editors count."""

    line: int
    column: int


class DocumentError(Exception):
    """The text cannot be read any further."""

    def __init__(self, message: str, position: Position) -> None:
        self.message, self.position = message, position
        super().__init__(message)


@dataclass(slots=True)
class Document:
    """The values of a text; positions of keys, or of items, by the way to them."""

    value: Any = None
    source: bytes = b""
    positions: dict[Key, Position] = field(default_factory=dict)
    problems: list[tuple[Position, Key, str]] = field(default_factory=list)

    def position(self, key: Key) -> Position:
        """Where a value stands, or what is nearest above it."""
        while key and key not in self.positions:
            key = key[:-1]
        return self.positions.get(key, Position(1, 1))


def read_document(text: str) -> Document:
    """The document in a text. Raises DocumentError where the rest cannot be read."""
    document = Document()
    document.value = _Values(document).read(_composed(text), ())
    return document


# --- nodes


def _composed(text: str) -> Any:
    """The nodes of a text. An alias is the node it names, which is written out later, within a budget."""
    if (match := yaml.reader.Reader.NON_PRINTABLE.search(text)) is not None:
        line = text.count("\n", 0, match.start()) + 1
        column = match.start() - text.rfind("\n", 0, match.start())
        raise DocumentError(f"the character {match[0]!r} cannot stand in YAML", Position(line, column))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # written in C, where it was built so
    try:
        _check(yaml.parse(text, Loader=loader))
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        unclosed = str(error.context).startswith("while parsing a flow")  # a bracket: where it was opened
        mark = (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark
        what = error.problem or error.context or "cannot be read"
        raise DocumentError(f"not valid YAML: {what}", _position(mark)) from None
    except yaml.YAMLError as error:
        raise DocumentError(f"not valid YAML: {error}", Position(1, 1)) from None
    if root is None:
        raise DocumentError("the file is empty; 'journeyman init' writes one to begin with", Position(1, 1))
    return root


def _check(events: Iterable[Any]) -> None:
    """Refuse what is nested too deeply, has a tag or refers to nothing, before nodes are made of it."""
    open_anchors: list[str | None] = []
    ended: set[str | None] = set()
    documents = 0
    for event in events:
        position = _position(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise DocumentError("a configuration is one document: take the '---' away", position)
        elif isinstance(event, yaml.CollectionEndEvent):
            ended.add(open_anchors.pop())
        elif isinstance(event, yaml.NodeEvent):
            if len(open_anchors) > MOST_DEPTH:
                raise DocumentError(f"nested more than {MOST_DEPTH} levels deep", position)
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in ended:
                    raise DocumentError(f"the alias '*{event.anchor}' names no anchor that ended before it", position)
            elif (tag := getattr(event, "tag", None)) is not None:
                raise DocumentError(f"tags such as {tag!r} have no meaning here; write plain values", position)
            elif isinstance(event, yaml.CollectionStartEvent):
                open_anchors.append(event.anchor)
            else:
                ended.add(event.anchor)


def _position(mark: Any) -> Position:
    return Position(1, 1) if mark is None else Position(mark.line + 1, mark.column + 1)


def _content(node: Any) -> Any:
    """What a scalar means: in quotes a text, else by the core schema of YAML 1.2. Too long numbers stay texts."""
    text: str = node.value
    if node.style:
        return text
    if (folded := text.lower()) in _CONSTANTS:
        return _CONSTANTS[folded]
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


# --- values


class _Values:
    """From nodes to values. Counts what it makes."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._made = 0

    def read(self, node: Any, key: Key) -> Any:
        position = _position(node.start_mark)
        self._made += 1
        if self._made > MOST_NODES:
            raise DocumentError(f"more than {MOST_NODES:,} values, with aliases written out", position)
        self._document.positions.setdefault(key, position)
        if isinstance(node, yaml.ScalarNode):
            return _content(node)
        if len(key) > MOST_DEPTH:  # aliases of aliases
            raise DocumentError(f"nested more than {MOST_DEPTH} levels deep", position)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*key, number)) for number, item in enumerate(node.value)]
        values: dict[str, Any] = {}
        for name, place, value in self._pairs(node, key, 0):
            below = _position(value.start_mark)
            given = isinstance(value, yaml.ScalarNode) and _content(value) is not None and below.line > place.line
            self._document.positions[(*key, name)] = below if given else place
            values[name] = self.read(value, (*key, name))
        return values

    def _pairs(self, node: Any, key: Key, merges: int) -> list[tuple[str, Position, Any]]:
        """Names and what stands under them; with ``<<`` those of other mappings, where they are not given here."""
        pairs: dict[str, tuple[str, Position, Any]] = {}
        merged: list[Any] = []
        for name_node, value in node.value:
            place = _position(name_node.start_mark)
            name = _content(name_node) if isinstance(name_node, yaml.ScalarNode) else None
            if name == _MERGE:
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif not isinstance(name, str):
                shown = str(name).lower() if isinstance(name_node, yaml.ScalarNode) else "it"
                self._note(place, key, f"a key is a text; put {shown} in quotes")
            elif name in pairs:
                line = pairs[name][1].line
                self._note(place, (*key, name), f"stands here twice; the first is in line {line}")
            else:
                pairs[name] = (name, place, value)
        for other in merged:
            self._made += 1
            if not isinstance(other, yaml.MappingNode) or merges > MOST_DEPTH or self._made > MOST_NODES:
                raise DocumentError(f"'{_MERGE}' takes an alias of other keys and values", _position(other.start_mark))
            for pair in self._pairs(other, key, merges + 1):
                self._made += 1
                pairs.setdefault(pair[0], pair)
        return list(pairs.values())

    def _note(self, position: Position, key: Key, message: str) -> None:
        self._document.problems.append((position, key, message))


def without(value: Any, key: Key) -> Any:
    """A copy of values without what stands at one key; the same values where nothing does."""
    if not key:
        return value
    step, rest = key[0], key[1:]
    if isinstance(value, dict) and step in value:
        if not rest:
            return {name: item for name, item in value.items() if name != step}
        return {**value, step: without(value[step], rest)}
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        if not rest:
            return [*value[:step], *value[step + 1 :]]
        return [*value[:step], without(value[step], rest), *value[step + 1 :]]
    return value
