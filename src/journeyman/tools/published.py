"""``@resource`` and ``@prompt``: what a program publishes for MCP clients besides its tools.

Both are tools that only read, so that whoever reads one is governed as in any other call; models may call them, too.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec, TypeAlias, TypeVar, Unpack, overload

from journeyman.core.errors import ToolDefinitionError
from journeyman.core.specification import PROMPT, RESOURCE
from journeyman.tools.decorator import ToolOptions, tool
from journeyman.tools.tool import Tool

P = ParamSpec("P")
R = TypeVar("R")
Complete: TypeAlias = Callable[..., Iterable[str] | Awaitable[Iterable[str]]]
"""From what was typed so far, and if it takes that the arguments given before, to what the argument may be."""

_VARIABLE = re.compile(r"\{[+#./;?&]?([^{}]*?)\*?\}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")


def resource(
    uri: str,
    /,
    *,
    mime_type: str | None = None,
    complete: Mapping[str, Complete] | None = None,
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[P, R]], Tool[P, R]]:
    """Publish what a function returns under an address; with ``{names}`` in it, under all that fit (RFC 6570).

    The parameters are the names in the address. A text is ``text/plain``, bytes are a file (annotate ``-> bytes``),
    anything else is JSON; ``mime_type`` says it more exactly. ``complete`` suggests values for parameters.
    """
    if not isinstance(uri, str) or not _ADDRESS.fullmatch(uri):
        raise ToolDefinitionError(f"resource({uri!r}): give an address, e.g. @resource('orders://{{order_id}}')")

    def decorate(function: Callable[P, R]) -> Tool[P, R]:
        about = {"uri": uri, "mime_type": mime_type}
        made = _made(function, RESOURCE, {key: value for key, value in about.items() if value}, complete, options)
        named = {name for names in _VARIABLE.findall(uri) for name in names.split(",")}
        taken, needed = set(made.specification.parameters["properties"]), made.specification.parameters.get("required")
        if wrong := sorted((named - taken) | (set(needed or ()) - named)):
            raise ToolDefinitionError(
                f"resource({uri!r}): {', '.join(map(repr, wrong))} must stand both in the address, in braces, and "
                f"among the parameters of {made.name!r}"
            )
        return made

    return decorate


@overload
def prompt(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def prompt(
    *, complete: Mapping[str, Complete] | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def prompt(
    function: Any = None, /, *, complete: Mapping[str, Complete] | None = None, **options: Unpack[ToolOptions]
) -> Any:
    """Publish a prompt: the function returns its text, or a list of messages ``{"role": …, "content": …}``."""
    if function is None:
        return lambda decorated: _made(decorated, PROMPT, {}, complete, options)
    return _made(function, PROMPT, {}, complete, options)


def _made(
    function: Callable[P, R],
    kind: str,
    about: Mapping[str, Any],
    complete: Mapping[str, Complete] | None,
    options: ToolOptions,
) -> Tool[P, R]:
    given: ToolOptions = {"read_only": True, **options, "metadata": {**(options.get("metadata") or {}), kind: about}}
    made = tool(function, **given)
    if wrong := sorted(set(complete or ()) - set(made.specification.parameters["properties"])):
        raise ToolDefinitionError(
            f"{made.name!r}: complete names {', '.join(map(repr, wrong))}, which it does not take"
        )
    return replace(made, complete=dict(complete or {}))
