"""Why a text is not gram: each error's place, what stands there and what could have stood there.

The parser recovers after an error, so that several are found at once. What was expected comes from the parser's own
tables: what it could have taken in the state in which it got stuck.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tree_sitter import Language, Node, Tree

from journeyman.gram.data import Source
from journeyman.gram.errors import Fault

MOST_FAULTS = 100

_READABLE = {
    "symbol": "a name",
    "integer": "a number",
    "decimal": "a number",
    "hexadecimal": "a number",
    "octal": "a number",
    "measurement": "a number",
    '"': "a string",
    "'": "a string",
    "`": "a string",
    "```": "a string",
    "a value": "a value",
    "end": "the end of the text",
    "string_content": "a string's text",
    "\n": "a line break",
}
_PUNCTUATION = frozenset([*"[]{}()|,@:-=~", "@@", "::", "..", "...", "->", "=>", "~>", "<-", "<=", "<~"])
_STRUCTURE = frozenset("[]{}(),")
_HOLDS_VALUES = frozenset({"record_property", "map_entry", "array", "property_annotation"})
_QUOTES = frozenset({'"', "'", "`"})
_STRINGS = frozenset({"string_literal", "tagged_string", "quoted_name", "double_quoted_name"})
_OPENING = frozenset("[({")
_CLOSING = frozenset("])}")
_UNFIT = {
    "": frozenset("])}|,"),
    "[": frozenset([")", "}", "@", "@@", "end"]),
    "(": frozenset(["]", "}", "|", ",", "[", "(", "@", "@@", "end"]),
    "{": frozenset(["]", ")", "|", "(", "@", "@@", "end"]),
}
_AT_LEAST = {
    "": "a pattern, such as (node), [pattern] or (a)-->(b)",
    "[": "an element, such as a name, (node) or [pattern], and ']'",
    "(": "')'",
    "{": "'}'",
}
_LONGEST = 30


def faults(tree: Tree, language: Language, source: Source) -> list[Fault]:
    """Everything that is wrong, in the order of the text; at most ``MOST_FAULTS``."""
    found: dict[int, Fault] = {}
    for node in _broken(tree):
        place, expected = _place(node, language)
        if place not in found:
            found[place] = _fault(place, expected, source)
        if len(found) == MOST_FAULTS:
            break
    return [found[place] for place in sorted(found)]


def _broken(tree: Tree) -> Iterator[Node]:
    """The outermost nodes that hold an error or stand for something missing."""
    waiting = [tree.root_node]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting.extend(reversed(node.children))


def _place(node: Node, language: Language) -> tuple[int, list[str]]:
    """Where the parser got stuck, and what it could have taken there."""
    in_value = node.parent is not None and node.parent.type in _HOLDS_VALUES
    if node.is_missing:
        return node.start_byte, ["a value" if in_value else _READABLE.get(node.type, repr(node.type))]
    opening = node.parent.child(0) if node.parent is not None and node.parent.type in _STRINGS else None
    if opening is not None and opening.type in _QUOTES:
        return _unclosed(opening)
    open_brackets = _enclosing(node)
    last: Node | None = None
    quote: Node | None = None
    for leaf in _leaves(node):
        if quote is not None and leaf.type != quote.type:
            return _unclosed(quote)
        if leaf.type == "comment":
            if last is not None and last.type in _QUOTES:
                return _unclosed(last)
            continue
        state = leaf.parse_state
        unfit = _UNFIT[open_brackets[-1] if open_brackets else ""]
        if state and (leaf.is_error or leaf.type in unfit or leaf.grammar_id not in _symbols(language, state)):
            return leaf.start_byte, _expected(language, state, unfit)
        if leaf.type in _OPENING:
            open_brackets.append(leaf.type)
        elif leaf.type in _CLOSING and open_brackets:
            open_brackets.pop()
        quote = last if leaf.type == "string_content" and last is not None and last.type in _QUOTES else None
        last = leaf
    if quote is not None:
        return _unclosed(quote)
    following = node.next_sibling
    place = following.start_byte if following is not None else node.end_byte
    bracket = open_brackets[-1] if open_brackets else ""
    state = last.next_parse_state if last is not None else 0
    expected = _expected(language, state, _UNFIT[bracket]) if state else []
    return place, expected or ["a value" if in_value else _AT_LEAST[bracket]]


def _unclosed(quote: Node) -> tuple[int, list[str]]:
    return quote.start_byte, [f"a closing {quote.type} on the same line ('/\\/' for '//' at a string's beginning)"]


def _leaves(node: Node) -> Iterator[Node]:
    waiting = list(reversed(node.children)) or [node]
    while waiting:
        leaf = waiting.pop()
        if leaf.child_count:
            waiting.extend(reversed(leaf.children))
        else:
            yield leaf


def _enclosing(node: Node) -> list[str]:
    """The innermost bracket that is open before this node."""
    parent = node.parent
    while parent is not None:
        first = parent.child(0)
        if first is not None and first.type in _OPENING and first.end_byte <= node.start_byte:
            return [first.type]
        parent = parent.parent
    return []


@cache
def _symbols(language: Language, state: int) -> frozenset[int]:
    iterator = language.lookahead_iterator(state)
    return frozenset() if iterator is None else frozenset(iterator.symbols())


def _expected(language: Language, state: int, unfit: frozenset[str]) -> list[str]:
    """What a state takes. The tables share states between brackets, so what fits another bracket is left out."""
    iterator = language.lookahead_iterator(state)
    if iterator is None:
        return []
    names = {name for name in iterator.names() if name not in unfit}
    if "true" in names:
        names = {"a value", *(names & _STRUCTURE)}
    found = (_READABLE.get(name) or (repr(name) if name in _PUNCTUATION else None) for name in names)
    return sorted({name for name in found if name is not None})


def _fault(place: int, expected: list[str], source: Source) -> Fault:
    words = source.encoded[place : place + 200].decode("utf-8", "ignore").split(None, 1)
    if not words and not source.encoded[place:].strip():
        place = min(place, len(source.encoded.rstrip()))
    line, column = source.position(place)
    if not words:
        found = "the text ends here"
    elif source.encoded[place : place + 1].isspace():
        found = "something is missing"
    else:
        found = f"found {_shortened(words[0])}"
    return Fault(line, column, found, _listed(expected), source.line(line))


def _shortened(word: str) -> str:
    return repr(word if len(word) <= _LONGEST else f"{word[:_LONGEST]}…")


def _listed(expected: list[str]) -> str:
    if not expected:
        return _AT_LEAST[""]
    *first, last = expected
    return f"{', '.join(first)} or {last}" if first else last
