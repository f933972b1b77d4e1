"""From text to a document. The grammar of record is the published `tree-sitter-gram`; `diagnosis` tells errors."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING

from journeyman.core.errors import ConfigurationError
from journeyman.gram.data import Document, Source
from journeyman.gram.errors import Fault, GramSyntaxError

if TYPE_CHECKING:
    from tree_sitter import Language

    from journeyman.gram.walking import Kinds

_PAGE = 4096
_PATIENCE = 1.0
_PATIENCE_PER_BYTE = 5e-6


def parse(text: str, *, file: str | None = None) -> Document:
    """Read a gram text. ``file`` is the name that errors give it.

    Raises GramSyntaxError, with every error that was found.
    """
    from tree_sitter import Parser

    from journeyman.gram.diagnosis import faults
    from journeyman.gram.lowering import Lowering

    source = _source(text, file)
    language, kinds = _grammar()
    pages = _Pages(source.encoded)
    tree = Parser(language).parse(pages.read)
    if tree.root_node.has_error or pages.withheld:
        found = faults(tree, language, source) or [Fault(1, 1, "a text that takes too long to read", "less of it")]
        # what follows the first error may only seem wrong where the rest was withheld
        raise GramSyntaxError(found[:1] if pages.withheld else found, file=file)
    return Lowering(tree.walk(), kinds, source).document()


def load(path: Path) -> Document:
    """Read a gram file, which is UTF-8."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"cannot read {str(path)!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{str(path)!r} is not UTF-8 text: {error}") from error
    return parse(text, file=str(path))


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
        self._deadline = thread_time() + _PATIENCE + _PATIENCE_PER_BYTE * len(encoded)
        self.withheld = False

    def read(self, at: int, _: object) -> bytes:
        self.withheld = self.withheld or thread_time() > self._deadline
        return b"" if self.withheld else self._encoded[at : at + _PAGE]


@cache
def _grammar() -> tuple[Language, Kinds]:
    import tree_sitter
    import tree_sitter_gram

    from journeyman.gram.walking import Kinds

    language = tree_sitter.Language(tree_sitter_gram.language())
    return language, Kinds(language)


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
        line, column = source.position(place)
        fault = Fault(line, column, what, "text", source.line(line))
        raise GramSyntaxError([fault], file=file)
    return source
