"""``@tool``: a Python function, method or callable object becomes a ``Tool``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from journeyman.core.context import ToolContext
from journeyman.core.errors import InvalidDataError, ToolDefinitionError
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import DEFAULT_TIMEOUT, RESERVED_NAMES, ToolSpecification
from journeyman.tools.callables import without_partials
from journeyman.tools.schema import function_name, function_schema
from journeyman.tools.tool import KNOWN_READS, Isolation, Tool, check_options, is_async

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    risk: RiskLevel | str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    category: str = "general",
    permissions: Iterable[str] = (),
    timeout_seconds: float = DEFAULT_TIMEOUT,
    retries: int = 0,
    cache_seconds: float | None = None,
    repeatable: bool = False,
    isolation: Isolation = "thread",
    tags: Sequence[str] = (),
    examples: Sequence[Any] = (),
    metadata: Mapping[str, Any] | None = None,
    version: str = "1",
    deprecated: bool | str = False,
) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    risk: RiskLevel | str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    category: str = "general",
    permissions: Iterable[str] = (),
    timeout_seconds: float = DEFAULT_TIMEOUT,
    retries: int = 0,
    cache_seconds: float | None = None,
    repeatable: bool = False,
    isolation: Isolation = "thread",
    tags: Sequence[str] = (),
    examples: Sequence[Any] = (),
    metadata: Mapping[str, Any] | None = None,
    version: str = "1",
    deprecated: bool | str = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Make a tool of a function, a method or an object with ``__call__``; as a decorator or as a plain call.

    Options: name, description, risk, read_only, idempotent, category, permissions, timeout_seconds (1–300),
    retries, cache_seconds (read-only tools), repeatable (exempt from the repeat guard: polling), isolation
    ("thread", or "process" for importable functions that must be killable), tags, examples, metadata, version,
    deprecated.
    """
    if function is None:
        return lambda decorated: _make(decorated, **options)
    return _make(function, **options)


def _make(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    retries: int = 0,
    cache_seconds: float | None = None,
    repeatable: bool = False,
    isolation: Isolation = "thread",
    permissions: Iterable[str] = (),
    metadata: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Tool[..., Any]:
    where = function_name(function)
    if isinstance(function, Tool):
        raise ToolDefinitionError(f"{where} is a tool already; use tool.with_changes(...) for a variant")
    unbound = _is_method_in_class_body(function)
    schema = function_schema(function, context_type=ToolContext, skip_first=unbound)
    called = name or _plain_name(function)
    if called in RESERVED_NAMES:
        raise ToolDefinitionError(f"{where}: the name {called!r} is reserved; give another with tool(name=...)")
    told = description if description is not None else schema.documentation.description
    if not told.strip():
        raise ToolDefinitionError(f"{where}: has no docstring; write one, or give tool(description=...)")
    if isinstance(permissions, str):
        raise ToolDefinitionError(f"{where}: permissions must be a collection, write {{{permissions!r}}}")
    if called in KNOWN_READS and fields.get("risk") is None:
        fields.setdefault("read_only", True)
    check_options(where, retries=retries, cache_seconds=cache_seconds, read_only=bool(fields.get("read_only")))
    try:
        specification = ToolSpecification(
            name=called,
            description=told,
            parameters=schema.parameters,
            returns=schema.returns,
            permissions=frozenset(permissions),
            metadata=dict(metadata or {}),
            **fields,
        )
    except InvalidDataError as error:
        raise ToolDefinitionError(f"{where}: {error.problems}") from None
    made: Tool[..., Any] = Tool(
        specification=specification,
        function=function,
        schema=schema,
        retries=retries,
        cache_seconds=cache_seconds,
        repeatable=repeatable,
        isolation=isolation,
        is_async=is_async(function),
        unbound=unbound,
    )
    _check_isolation(made, where)
    return made


def _check_isolation(made: Tool[..., Any], where: str) -> None:
    if made.isolation not in ("thread", "process"):
        raise ToolDefinitionError(f"{where}: isolation is 'thread' or 'process', got {made.isolation!r}")
    if made.isolation == "process" and (made.unbound or not _importable(made.function)):
        raise ToolDefinitionError(
            f"{where}: isolation='process' needs a function that another process can import; "
            "move it to the top level of a module (not __main__, not inside a function or class)"
        )


def _importable(function: Callable[..., Any]) -> bool:
    return inspect.isfunction(function) and function.__module__ != "__main__" and "." not in function.__qualname__


def _plain_name(function: Callable[..., Any]) -> str:
    named = without_partials(function)
    return getattr(named, "__name__", None) or type(named).__name__


def _is_method_in_class_body(function: Callable[..., Any]) -> bool:
    """A function defined in a class is decorated before there is an instance: its first parameter is the instance."""
    if not inspect.isfunction(function):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    if not owner or owner.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.annotation is inspect.Parameter.empty and first.name in ("self", "cls")
