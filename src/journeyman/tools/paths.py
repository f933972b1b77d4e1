"""From ``module:name``, as configuration has it, to the tools it names."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from operator import attrgetter
from typing import Any

from journeyman.core.errors import ToolDefinitionError
from journeyman.tools.decorator import tool
from journeyman.tools.tool import Tool


def tools_at(paths: Iterable[str], *, expand: Callable[[Any], Iterable[Tool[..., Any]] | None]) -> list[Tool[..., Any]]:
    """The tools at some import paths; a plain function becomes one, and ``expand`` says what else holds some.

    Everything that cannot be used is told at once.
    """
    found: list[Tool[..., Any]] = []
    problems: list[str] = []
    for path in paths:
        try:
            found += _tools(_named(path), path, expand)
        except ToolDefinitionError as error:
            problems.append(str(error))
    if problems:
        raise ToolDefinitionError("\n".join(problems))
    return found


def _tools(value: Any, path: str, expand: Callable[[Any], Iterable[Tool[..., Any]] | None]) -> list[Tool[..., Any]]:
    if isinstance(value, Tool):
        return [value]
    several = expand(value)
    if several is not None:
        return list(several)
    if isinstance(value, type) or not callable(value):
        raise ToolDefinitionError(f"{path!r} is a {type(value).__name__}, not a tool, a function or a library")
    return [tool(value)]


def _named(path: str) -> Any:
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise ToolDefinitionError(f"{path!r} is no import path; write 'module:function'")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a module's code can raise anything
        raise ToolDefinitionError(
            f"{path!r}: cannot import {module_name!r}: {type(error).__name__}: {error}"
        ) from error
    try:
        return attrgetter(name)(module)
    except AttributeError:
        near = get_close_matches(name, vars(module))
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ToolDefinitionError(f"{path!r}: module {module_name!r} has no {name!r}{hint}") from None
