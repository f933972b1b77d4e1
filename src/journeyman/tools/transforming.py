"""A tool as somebody else wants it told: under another name, with other arguments, and with less in its results.

What is checked, approved and run are the tool's own arguments, those that were given for good among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from pydantic_core import from_json

from journeyman.core.data import canonical_json
from journeyman.core.errors import ToolDefinitionError
from journeyman.core.specification import ToolSpecification
from journeyman.tools.tool import Adapter, Tool

_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KEYS = {"rename", "description", "hide", "value"}


class Transformed:
    """For ``library.mapped()``: by name, ``*`` for several, what is told of tools otherwise; see ``transformed``."""

    def __init__(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        self._changes = {name: dict(change) for name, change in changes.items()}
        self._made: dict[str, tuple[Tool[..., Any], Tool[..., Any]]] = {}

    def __call__(self, item: Tool[..., Any]) -> Tool[..., Any]:
        if (kept := self._made.get(item.name)) is not None and kept[0] is item:
            return kept[1]
        made = item
        for pattern, change in self._changes.items():
            if fnmatchcase(item.name, pattern):
                made = transformed(made, **change)
        self._made[item.name] = item, made
        return made


def transformed(
    item: Tool[..., Any],
    *,
    rename: str | None = None,
    description: str | None = None,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    result: Mapping[str, Any] | None = None,
) -> Tool[..., Any]:
    """A tool under another name or description. Raises ToolDefinitionError, which says what cannot be.

    ``arguments`` are by name: ``{"rename": NAME}``, ``{"description": TEXT}``, ``{"hide": True}`` for one that can be
    left out, ``{"value": ANY}`` for one that always has this value. ``result`` may have ``select``, paths of the fields
    that are kept (``owner.name``; lists are gone through), ``items`` of each list and ``chars`` of each text.
    """
    specification = item.specification
    changes: dict[str, Any] = {"name": rename, "description": description}
    fields: dict[str, Any] = {}
    if arguments:
        renamed = _Told(specification, arguments)
        changes |= {"parameters": renamed.parameters, "signature": "", "sends": renamed.sends}
        given = canonical_json([renamed.names, sorted(renamed.hidden), renamed.fixed])
        fields["adapt"] = partial(_given, given, item.adapt)
    if result:
        if wrong := sorted(result.keys() - {"select", "items", "chars"}):
            raise ToolDefinitionError(f"tool {item.name!r}: result takes select, items and chars, not {wrong[0]!r}")
        fields["shorten"] = partial(shortened, **result)
        changes |= {"returns": None, "signature": ""}
    changes = {name: value for name, value in changes.items() if value is not None or name in ("returns", "sends")}
    made = item.with_changes(**changes) if changes else item
    return replace(made, **fields) if fields else made


class _Told:
    """The schema that models are told."""

    def __init__(self, specification: ToolSpecification, arguments: Mapping[str, Mapping[str, Any]]) -> None:
        schema, where = specification.parameters, f"tool {specification.name!r}"
        known: dict[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        self.names: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.fixed: dict[str, Any] = {}
        for name, said in arguments.items():
            if name not in known:
                raise ToolDefinitionError(f"{where} has no parameter {name!r}; it has {', '.join(known) or 'none'}")
            if wrong := sorted(said.keys() - _KEYS):
                raise ToolDefinitionError(f"{where}: {name!r}: {wrong[0]!r} is not one of {', '.join(sorted(_KEYS))}")
            if "value" in said:
                self.fixed[name] = said["value"]
            elif said.get("hide") and name in required:
                raise ToolDefinitionError(f"{where}: {name!r} is required: to hide it, give it a 'value'")
            if "value" in said or said.get("hide"):
                self.hidden.add(name)
            if (other := said.get("rename")) is not None:
                if not _ARGUMENT.fullmatch(other) or other in known or other in self.names:
                    raise ToolDefinitionError(f"{where}: {name!r} cannot be called {other!r}: it is taken, or no name")
                self.names[other] = name
        back = {name: other for other, name in self.names.items()}
        properties = {}
        for name, one in known.items():
            if name not in self.hidden:
                text = arguments.get(name, {}).get("description")
                properties[back.get(name, name)] = one if text is None else {**one, "description": text}
        self.parameters = {**schema, "properties": properties}
        self.parameters["required"] = [
            back.get(name, name) for name in schema.get("required", ()) if name not in self.hidden
        ]
        self.sends = None if specification.sends is None else tuple(self._recipients(specification.sends, where, back))

    def _recipients(self, sends: Sequence[str], where: str, back: Mapping[str, str]) -> Iterator[str]:
        for name in sends:
            if name in back or (name in self.hidden and name not in self.fixed):
                raise ToolDefinitionError(f"{where}: {name!r} names a recipient, and is neither renamed nor hidden")
            yield f"to:{self.fixed[name]}" if name in self.fixed else name


def _given(stored: str, adapt: Adapter | None, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments under the tool's own names, with those that are given for good."""
    names, hidden, fixed = from_json(stored)
    own = {names.get(name, name): value for name, value in given.items() if name not in hidden}
    return {**(own if adapt is None else adapt(own)), **fixed}


# --- results


def shortened(value: Any, *, select: Iterable[str] = (), items: int | None = None, chars: int | None = None) -> Any:
    """A result with only these fields, so many items of each list, so many characters of each text."""
    paths = [path.split(".") for path in select]
    if paths:
        if isinstance(value, str):  # many servers give JSON as a text
            try:
                value = from_json(value)
            except ValueError:
                paths = []
        value = _selected(value, paths) if paths else value
    return _cut(value, items, chars)


def _selected(value: Any, paths: Sequence[Sequence[str]]) -> Any:
    if isinstance(value, list):
        return [_selected(item, paths) for item in value]
    if not isinstance(value, dict) or any(not path for path in paths):
        return value
    kept = {}
    for name, inner in value.items():
        if below := [path[1:] for path in paths if path[0] == name or path[0] == "*"]:
            kept[name] = _selected(inner, below)
    return kept


def _cut(value: Any, items: int | None, chars: int | None) -> Any:
    if isinstance(value, str) and chars is not None and len(value) > chars:
        return f"{value[:chars]}… ({len(value) - chars:,} more characters)"
    if isinstance(value, dict):
        return {name: _cut(inner, items, chars) for name, inner in value.items()}
    if isinstance(value, list):
        most = len(value) if items is None else items
        more = [f"… ({len(value) - most:,} more)"] if len(value) > most else []
        return [*(_cut(inner, items, chars) for inner in value[:most]), *more]
    return value
