"""Agents and tools as text that people can read, diff, review and share, in gram notation.

``parse`` and ``dumps`` are for any gram; ``load_tools`` and ``dump_tools`` for documents that describe tools. Agents
come from ``Agent.from_gram`` and ``load_agents`` of the package itself. The parser is loaded when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path as _File

from journeyman.core.signature import signature_schema
from journeyman.core.specification import ToolSpecification
from journeyman.gram.data import (
    Annotated,
    Arrow,
    Document,
    Label,
    Map,
    Measurement,
    Path,
    Pattern,
    Property,
    Range,
    Reference,
    Subject,
    Symbol,
    Tagged,
)
from journeyman.gram.errors import Fault, GramDocumentError, GramError, GramSyntaxError
from journeyman.gram.parsing import load, parse
from journeyman.gram.printing import dumps

__all__ = [
    "Annotated",
    "Arrow",
    "Document",
    "Fault",
    "GramDocumentError",
    "GramError",
    "GramSyntaxError",
    "Label",
    "Map",
    "Measurement",
    "Path",
    "Pattern",
    "Property",
    "Range",
    "Reference",
    "Subject",
    "Symbol",
    "Tagged",
    "dump_tools",
    "dumps",
    "load",
    "load_tools",
    "parse",
    "signature_schema",
]


def load_tools(source: str | _File) -> list[ToolSpecification]:
    """The specifications of all tools in a gram text or file, whether inside an agent or beside it."""
    from journeyman.gram.parsing import read
    from journeyman.gram.reading import Reader

    # agents are not made here, so nothing is known of their fields
    return Reader(read(source), dict, ()).tools()


def dump_tools(tools: Iterable[ToolSpecification]) -> str:
    """Specifications as canonical gram text; ``load_tools`` gives them back, equal in every field."""
    from journeyman.gram.documents import tools_document

    return dumps(tools_document(tools))
