"""``@tool``: a Python function, method or callable object becomes a ``Tool``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from journeyman.core.calls import ToolContext
from journeyman.core.errors import ToolDefinitionError
from journeyman.core.policy import RiskLevel
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.tools.callables import function_name, without_partials
from journeyman.tools.schema import function_schema
from journeyman.tools.tool import (
    KNOWN_READS,
    Adapter,
    Describe,
    DescribeMethod,
    Hazard,
    Isolation,
    Render,
    RenderMethod,
    Tool,
    check_options,
    is_async,
    is_method,
)

P = ParamSpec("P")
R = TypeVar("R")


class ToolOptions(TypedDict, total=False):
    """What can be said about a tool besides its function."""

    name: str | None
    """The function's, unless given."""
    description: str | None
    """The docstring without its sections about parameters, results and exceptions, unless given."""
    risk: RiskLevel | str | None
    """None means undeclared: then known names and the policy's default decide."""
    read_only: bool
    idempotent: bool
    category: str
    permissions: Iterable[str]
    reads: Iterable[str] | str | None
    """"untrusted" where others write its results, "private" where only the principal may know them; () for neither."""
    sends: Iterable[str] | str | None
    """The parameters that name a recipient, or "to:NAME" for a fixed one; () where nothing leaves."""
    keeps_labels: bool
    """Whether what it stores keeps ``context.label``, and ``context.mark`` is called when that is read again."""
    secrets: Iterable[str]
    """Names of the secrets in ``context.secrets``. One that runs in a process of its own gets these and no others."""
    timeout_seconds: float
    """1 to 300; 30 unless given."""
    retries: int
    cache_seconds: float | None
    """For read-only tools."""
    repeatable: bool
    """Exempt from the repeat guard, for polling."""
    isolation: Isolation
    """"thread", or "process" for importable functions that must be killable."""
    adapt: Adapter | None
    """Puts arguments that were given under other names into the tool's own, before they are checked."""
    hazard: Hazard | None
    """From the arguments, as a mapping, to whether a person must agree to exactly this call; must be quick."""
    tags: Sequence[str]
    examples: Sequence[Any]
    metadata: Mapping[str, Any] | None
    version: str
    deprecated: bool | str
    """True, or a sentence that says what to use instead."""
    describe: Describe | DescribeMethod | None
    """Takes the arguments and the context, and says what the call is about to the person who must agree to it, e.g.
    the title of the task that an id names. Whatever goes wrong in it, the person is asked; it has a second."""
    render: Render | RenderMethod | None
    """Takes the arguments and the result, and says what the call came to, as Markdown for people, e.g. "Added *Milk*."
    Whatever goes wrong in it, the result is shown in a general form; it has a second."""


_CHECKED = ("retries", "cache_seconds", "describe", "render")
_OF_TOOL = (*_CHECKED, "repeatable", "isolation", "adapt", "hazard", "keeps_labels")
"""What the specification does not have."""
_NONE_IS_UNSET = ("name", "description", "risk", "metadata")


@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...


@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of a function, a method or an object with ``__call__``; as a decorator or as a plain call.

    Raises ToolDefinitionError, which names the function, the parameter or option, and the fix.
    """
    if function is None:
        return lambda decorated: _make(decorated, options)
    return _make(function, options)


def _make(function: Callable[..., Any], options: ToolOptions) -> Tool[..., Any]:
    where = function_name(function)
    if isinstance(function, Tool):
        raise ToolDefinitionError(f"{where} is a tool already; use tool.with_changes(...) for a variant")
    _check_names(where, options)
    unbound = is_method(function)
    schema = function_schema(function, context_type=ToolContext, skip_first=unbound)
    named = without_partials(function)
    name = getattr(named, "__name__", None) or type(named).__name__
    fields: dict[str, Any] = {"name": name, "description": schema.documentation.description}
    fields |= {
        key: value
        for key, value in options.items()
        if key not in _OF_TOOL and not (value is None and key in _NONE_IS_UNSET)
    }
    if isinstance(fields["description"], str) and not fields["description"].strip():
        raise ToolDefinitionError(f"{where}: has no docstring; write one, or give tool(description=...)")
    for option in ("permissions", "secrets"):
        if isinstance(given := fields.get(option), str):
            raise ToolDefinitionError(f"{where}: {option} must be a collection, write {{{given!r}}}")
    for option in ("reads", "sends"):
        if isinstance(given := fields.get(option), Iterable) and not isinstance(given, str):
            fields[option] = tuple(given)
    if "secrets" in fields:
        fields["secrets"] = tuple(fields["secrets"])
    try:
        specification = ToolSpecification(parameters=schema.parameters, returns=schema.returns, **fields)
    except ToolDefinitionError as error:
        raise ToolDefinitionError.of_fields(where, error.problems) from error
    if specification.name in RESERVED_NAMES:
        raise ToolDefinitionError(
            f"{where}: the name {specification.name!r} is reserved; give another with tool(name=...)"
        )
    if specification.name in KNOWN_READS and "read_only" not in fields and "risk" not in fields:
        specification = specification.model_copy(update={"read_only": True})
    retries, cache_seconds = options.get("retries", 0), options.get("cache_seconds")
    check_options(where, retries=retries, cache_seconds=cache_seconds, read_only=specification.read_only)
    own: dict[str, Any] = {name: value for name, value in options.items() if name in _OF_TOOL and name not in _CHECKED}
    made: Tool[..., Any] = Tool(
        specification=specification,
        function=function,
        schema=schema,
        retries=retries,
        cache_seconds=cache_seconds,
        is_async=is_async(function),
        unbound=unbound,
        describe=_checked_hook(where, "describe", options.get("describe"), "the arguments and the context"),
        render=_checked_hook(where, "render", options.get("render"), "the arguments and the result"),
        **own,
    )
    _check_isolation(made, where)
    return made


def _check_names(where: str, options: ToolOptions) -> None:
    known = list(ToolOptions.__annotations__)
    for name in options:
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise ToolDefinitionError(f"{where}: tool() has no option {name!r}; {hint}")


def _checked_hook(where: str, option: str, hook: Any, takes: str) -> Any:
    """A function of two things, and of the instance before them where it is a method. Raises ToolDefinitionError."""
    if hook is None:
        return None
    try:
        inspect.signature(hook).bind(*range(3 if is_method(hook) else 2))
    except (TypeError, ValueError):
        raise ToolDefinitionError(f"{where}: {option} must be a function of {takes}, got {hook!r}") from None
    return hook


def _check_isolation(made: Tool[..., Any], where: str) -> None:
    if made.isolation not in ("thread", "process"):
        raise ToolDefinitionError(f"{where}: isolation is 'thread' or 'process', got {made.isolation!r}")
    function: Any = made.function
    importable = inspect.isfunction(function) and function.__module__ != "__main__" and "." not in function.__qualname__
    if made.isolation == "process" and (made.unbound or not importable):
        raise ToolDefinitionError(
            f"{where}: isolation='process' needs a function that another process can import; "
            "move it to the top level of a module (not __main__, not inside a function or class)"
        )
