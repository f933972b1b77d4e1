"""Agents and tools as text that people can read, diff, review and share, in gram notation.

``parse`` and ``dumps`` are for any gram; ``load_tools`` and ``dump_tools`` for documents that describe tools. Agents
come from ``Agent.from_gram`` and ``load_agents`` of the package itself. All of it is loaded when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path as _File
from typing import TYPE_CHECKING, Any

from journeyman.core.specification import ToolSpecification

if TYPE_CHECKING:
    from journeyman.core.signature import signature_schema
    from journeyman.gram.data import (
        Annotated,
        Arrow,
        Document,
        Fault,
        GramDocumentError,
        GramError,
        GramSyntaxError,
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
    from journeyman.gram.parsing import load, parse
    from journeyman.gram.printing import dumps

__all__ = ["dump_tools", "dumps", "load", "load_tools", "parse", "signature_schema"]
__all__ += ["Fault", "GramDocumentError", "GramError", "GramSyntaxError"]
__all__ += ["Annotated", "Arrow", "Document", "Label", "Map", "Measurement", "Path", "Pattern", "Property", "Range"]
__all__ += ["Reference", "Subject", "Symbol", "Tagged"]

_HOMES = {"dumps": ".printing", "load": ".parsing", "parse": ".parsing", "signature_schema": "..core.signature"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, ".data"), __name__), name)


def load_tools(source: str | _File) -> list[ToolSpecification]:
    """The specifications of all tools in a gram text or file, whether inside an agent or beside it."""
    from journeyman.gram.documents import Reader
    from journeyman.gram.parsing import read

    # agents are not made here, so nothing is known of their fields
    return Reader(read(source), dict, ()).tools()


def dump_tools(tools: Iterable[ToolSpecification]) -> str:
    """Specifications as canonical gram text; ``load_tools`` gives them back, equal in every field."""
    from journeyman.gram.documents import tools_document
    from journeyman.gram.printing import dumps

    return dumps(tools_document(tools))
