"""Journeyman: tool-calling agents that people can trust and that get better with practice.

The public names are listed once, in ``__init__.pyi``, which type checkers read as well. Each is loaded when it is first
used, so that ``import journeyman`` stays cheap.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


@cache
def _homes() -> dict[str, str]:
    """Where each public name is defined."""
    import ast
    from pathlib import Path

    listed = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    return {name.name: item.module or "" for item in listed if isinstance(item, ast.ImportFrom) for name in item.names}


def __getattr__(name: str) -> Any:
    homes = _homes()
    if name == "__all__":
        return sorted(homes)
    if name not in homes:
        raise AttributeError(f"module 'journeyman' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(homes[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
