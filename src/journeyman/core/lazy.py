"""Names of a package that are loaded when they are first used; listed once, in the stub that type checkers read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for the package in this file: what ``__init__.pyi`` beside it imports."""

    @cache
    def homes() -> dict[str, str]:
        import ast
        from pathlib import Path

        listed = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body
        return {
            name.name: item.module or "" for item in listed if isinstance(item, ast.ImportFrom) for name in item.names
        }

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes()[name]), name)

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *homes()})

    return get, names
