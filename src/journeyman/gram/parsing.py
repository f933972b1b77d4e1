"""From text to a document, or to the reasons why it is none. The grammar of record is the published `tree-sitter-gram`.

The parser recovers after an error, so that several are found at once. What was expected comes from the parser's own
tables: what it could have taken in the state in which it got stuck.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import thread_time
from types import SimpleNamespace
from typing import TYPE_CHECKING

from journeyman.core.data import GRAM_CHARS
from journeyman.core.errors import ConfigurationError
from journeyman.gram.data import Document, Fault, GramSyntaxError, Source

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

_PAGE = 4096
_SECONDS = 1.0
_SECONDS_PER_BYTE = 5e-6

MOST_FAULTS = 100

_READABLE = {
    **dict.fromkeys(("integer", "decimal", "hexadecimal", "octal", "measurement"), "a number"),
    **dict.fromkeys(('"', "'", "`", "```"), "a string"),
    "symbol": "a name",
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


def parse(text: str, *, file: str | None = None) -> Document:
    """Read a gram text. ``file`` is the name that errors give it.

    Raises GramSyntaxError, with every error that was found.
    """
    from tree_sitter import Parser

    from journeyman.gram.lowering import Lowering

    if len(text) > GRAM_CHARS:
        too_long = Fault(1, 1, f"a text of {len(text):,} characters", f"at most {GRAM_CHARS:,}")
        raise GramSyntaxError([too_long], file=file)
    source = _source(text, file)
    language, kinds = _grammar()
    pages = _Pages(source.encoded)
    tree = Parser(language).parse(pages.read)
    if tree.root_node.has_error or pages.withheld:
        faults = _faults(tree, language, source) or [Fault(1, 1, "a text that takes too long to read", "less of it")]
        # what follows the first error may only seem wrong where the rest was withheld
        raise GramSyntaxError(faults[:1] if pages.withheld else faults, file=file)
    return Lowering(tree.walk(), kinds, source).document()


def load(path: Path) -> Document:
    """Read a gram file, which is UTF-8."""
    return parse(text_of(path), file=str(path))


def text_of(path: Path) -> str:
    """The text of a gram file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not UTF-8 text: {error}") from error


def read(source: str | Path) -> Document:
    """A text, or a file's."""
    return load(source) if isinstance(source, Path) else parse(source)


class _Pages:
    """A text as the parser asks for it, until it takes too long.

    Good text costs about 0.1 µs a byte. After an error the parser tries many ways to go on, and for some texts the time
    this takes grows with the square of their length. Then the rest is withheld: errors have been found by then.
    """

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._deadline = thread_time() + _SECONDS + _SECONDS_PER_BYTE * len(encoded)
        self.withheld = False

    def read(self, at: int, _: object) -> bytes:
        self.withheld = self.withheld or thread_time() > self._deadline
        return b"" if self.withheld else self._encoded[at : at + _PAGE]


@cache
def _grammar() -> tuple[Language, SimpleNamespace]:
    import tree_sitter
    import tree_sitter_gram

    from journeyman.gram.lowering import node_kinds

    language = tree_sitter.Language(tree_sitter_gram.language())
    return language, node_kinds(language)


def _source(text: str, file: str | None) -> Source:
    """The text as UTF-8. Half a character and NUL are refused here: the parser takes the latter for the end."""
    try:
        encoded = text.encode("utf-8")
        place = encoded.find(b"\0")
        what = "a NUL character"
    except UnicodeEncodeError as error:
        encoded = text.encode("utf-8", "replace")
        place = len(text[: error.start].encode("utf-8"))
        what = "half of a character (a lone surrogate)"
    source = Source(text, encoded, file)
    if place >= 0:
        raise GramSyntaxError([source.fault(place, what, "text")], file=file)
    return source


# -- what is wrong


def _faults(tree: Tree, language: Language, source: Source) -> list[Fault]:
    """Everything that is wrong, in the order of the text; at most ``MOST_FAULTS``."""
    faults: dict[int, Fault] = {}
    for node in _broken(tree):
        place, expected = _place(node, language)
        if place not in faults:
            faults[place] = _fault(place, expected, source)
        if len(faults) == MOST_FAULTS:
            break
    return [faults[place] for place in sorted(faults)]


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
    readable = (_READABLE.get(name) or (repr(name) if name in _PUNCTUATION else None) for name in names)
    return sorted({name for name in readable if name is not None})


def _fault(place: int, expected: list[str], source: Source) -> Fault:
    words = source.encoded[place : place + 200].decode("utf-8", "ignore").split(None, 1)
    if not words and not source.encoded[place:].strip():
        place = min(place, len(source.encoded.rstrip()))
    if not words:
        what = "the text ends here"
    elif source.encoded[place : place + 1].isspace():
        what = "something is missing"
    else:
        word = words[0]
        what = f"found {word if len(word) <= _LONGEST else word[:_LONGEST] + '…'!r}"
    *first, last = expected or [_AT_LEAST[""]]
    return source.fault(place, what, f"{', '.join(first)} or {last}" if first else last)
