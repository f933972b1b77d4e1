"""Whether two JSON Schemas ask for the same thing, and where they do not.

What only people read (titles, descriptions, examples) and the order of properties, ``required``, enum members, type
lists and ``anyOf`` members do not count; ``$ref`` is followed. ``additionalProperties`` counts only as a schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from journeyman.gram.references import target

_UNCOUNTED = frozenset({"title", "description", "examples", "$comment", "$schema", "$id", "$defs", "definitions"})
_ONE = frozenset(
    {"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_UNORDERED = frozenset({"anyOf", "oneOf", "allOf"})

_LEFT, _RIGHT = "only in the specification", "only in the tool"


def same_schema(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether two schemas are structurally equal."""
    return not schema_differences(a, b)


def schema_differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Each difference between a specification's schema and a tool's, with its path: ``id.type: string != integer``."""
    try:
        return list(_Comparison(a, b).differences(a, b, ""))
    except RecursionError:
        return ["the schemas nest too deeply to be compared"]


def _freeze(value: Any) -> Any:
    """A JSON value as something hashable, equal exactly when JSON Schema calls the values equal."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, list):
        return tuple(map(_freeze, value))
    if isinstance(value, dict):
        return frozenset((key, _freeze(each)) for key, each in value.items())
    return value


def _show(value: Any) -> str:
    if isinstance(value, str) and value.isidentifier():
        return value
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else f"{text[:79]}…"


class _Side:
    """One of the two schemas: follows its references and irons out spellings that mean the same."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._plain: dict[int, dict[str, Any]] = {}

    def plain(self, schema: Any) -> dict[str, Any]:
        """A schema without references and without what does not count. One schema gives one object, always."""
        known = self._plain.get(id(schema))
        if known is None:
            end, beside = self._follow(schema)
            own = beside or end is schema
            known = self._normal(end) | self._normal(beside) if own else self.plain(end)
            self._plain[id(schema)] = known
        return known

    def _follow(self, schema: Any) -> tuple[Any, dict[str, Any]]:
        """Where a schema's references lead, and what counts beside them; the outermost has the last word."""
        beside: dict[str, Any] = {}
        followed: set[str] = set()
        while isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str):
            led_to = target(self.root, reference) if reference.startswith("#") else None
            if led_to is None or reference in followed:
                break
            followed.add(reference)
            beside = {key: value for key, value in schema.items() if key != "$ref" and key not in _UNCOUNTED} | beside
            schema = led_to
        return schema, beside

    @staticmethod
    def _normal(schema: Any) -> dict[str, Any]:
        if not isinstance(schema, dict):
            return {} if schema is True else {"not": {}} if schema is False else {"a schema": schema}
        normal = {key: value for key, value in schema.items() if key not in _UNCOUNTED}
        more = normal.get("additionalProperties")
        if isinstance(more, bool) or (isinstance(more, dict) and all(key in _UNCOUNTED for key in more)):
            del normal["additionalProperties"]
        for key in ("properties", "required"):
            if key in normal and not normal[key]:
                del normal[key]
        if "const" in normal and "enum" not in normal:
            normal["enum"] = [normal.pop("const")]
        if isinstance(kinds := normal.get("type"), list) and len(kinds) == 1:
            normal["type"] = kinds[0]
        return normal


class _Comparison:
    """Two schemas side by side.

    Schemas may refer to themselves, so a pair under comparison is taken as equal until something differs. A pair that
    has differed differs for good; a pair that was equal on the way to a difference is no longer known to be.
    """

    def __init__(self, a: Any, b: Any) -> None:
        self._a, self._b = _Side(a), _Side(b)
        self._equal: set[tuple[int, int]] = set()
        self._different: set[tuple[int, int]] = set()

    def differences(self, a: Any, b: Any, path: str) -> Iterator[str]:
        left, right = self._a.plain(a), self._b.plain(b)
        pair = (id(left), id(right))
        if pair in self._equal:
            if pair in self._different:
                yield f"{path}: differs as above"
            return
        self._equal.add(pair)
        for key in sorted(left.keys() | right.keys()):
            for difference in self._keyword(key, left, right, path):
                self._different.add(pair)
                yield difference

    def _same(self, a: Any, b: Any) -> bool:
        pair = (id(self._a.plain(a)), id(self._b.plain(b)))
        if pair in self._different:
            return False
        before = set(self._equal)
        if next(self.differences(a, b, ""), None) is None:
            return True
        self._equal = before
        return False

    def _keyword(self, key: str, left: dict[str, Any], right: dict[str, Any], path: str) -> Iterator[str]:
        a, b = left.get(key), right.get(key)
        if key in _NAMED and isinstance(a or {}, dict) and isinstance(b or {}, dict):
            yield from self._named(a or {}, b or {}, path if key == "properties" else _join(path, key))
        elif key == "required" and isinstance(a or [], list) and isinstance(b or [], list):
            yield from self._required(left, right, path)
        elif key not in left or key not in right:
            yield f"{_join(path, key)}: {_show(a if key in left else b)} {_LEFT if key in left else _RIGHT}"
        elif key in _ONE and isinstance(a, dict | bool) and isinstance(b, dict | bool):
            yield from self.differences(a, b, _join(path, key))
        elif key in _UNORDERED and isinstance(a, list) and isinstance(b, list):
            yield from self._unordered(a, b, _join(path, key))
        elif key == "prefixItems" and isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for index, (one, other) in enumerate(zip(a, b, strict=True)):
                yield from self.differences(one, other, f"{_join(path, key)}.{index}")
        elif key in ("type", "enum") and isinstance(a, list) and isinstance(b, list):
            if set(map(_freeze, a)) != set(map(_freeze, b)):
                yield f"{_join(path, key)}: {_show(a)} != {_show(b)}"
        elif _freeze(a) != _freeze(b):
            yield f"{_join(path, key)}: {_show(a)} != {_show(b)}"

    def _named(self, a: dict[str, Any], b: dict[str, Any], path: str) -> Iterator[str]:
        for name in a:
            if name in b:
                yield from self.differences(a[name], b[name], _join(path, name))
            else:
                yield f"{_join(path, name)}: {_LEFT}"
        yield from (f"{_join(path, name)}: {_RIGHT}" for name in b if name not in a)

    @staticmethod
    def _required(left: dict[str, Any], right: dict[str, Any], path: str) -> Iterator[str]:
        a, b = left.get("required", []), right.get("required", [])
        # a property that one side lacks is told as such, and need not be told again
        lacking = list(_property_names(left) ^ _property_names(right))
        yield from (f"{_join(path, name)}: required {_LEFT}" for name in a if name not in b and name not in lacking)
        yield from (f"{_join(path, name)}: required {_RIGHT}" for name in b if name not in a and name not in lacking)

    def _unordered(self, a: list[Any], b: list[Any], path: str) -> Iterator[str]:
        left_over = list(b)
        for one in a:
            match = next((index for index, other in enumerate(left_over) if self._same(one, other)), None)
            if match is None:
                yield f"{path}: {_show(one)} {_LEFT}"
            else:
                del left_over[match]
        yield from (f"{path}: {_show(other)} {_RIGHT}" for other in left_over)


def _property_names(schema: dict[str, Any]) -> set[str]:
    properties = schema.get("properties")
    return set(properties) if isinstance(properties, dict) else set()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
