"""Values of Python and JSON ⇄ values of gram. What gram cannot say is JSON in a tagged string."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from journeyman.gram.data import Map, Measurement, Property, Range, Scalar, Symbol, Tagged, Value

_AWKWARD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
"""Characters that gram cannot hold, or that editors and files do not keep; JSON can escape them."""

_LARGEST = 10**250


def awkward(text: str) -> bool:
    """Whether a text needs JSON's escapes."""
    return _AWKWARD.search(text) is not None


def to_gram(value: Any) -> Value:
    """A JSON value as gram. ValueError says what is no JSON, or would not come back as it was."""
    scalar = _scalar(value)
    if scalar is not None:
        return scalar
    if isinstance(value, list) and value:
        items = [_scalar(each) for each in value]
        if None not in items:
            return tuple(each for each in items if each is not None)
    if isinstance(value, dict) and value and not any(not isinstance(key, str) or awkward(key) for key in value):
        entries = {key: _scalar(each) for key, each in value.items()}
        if None not in entries.values():
            return Map(tuple(Property(key, each) for key, each in entries.items() if each is not None))
    return Tagged("json", _json(value))


def from_gram(value: Value) -> Any:
    """A gram value as JSON has it. ValueError says what JSON has no word for."""
    if isinstance(value, tuple):
        return [from_gram(each) for each in value]
    if isinstance(value, Map):
        return {item.name: from_gram(item.value) for item in value.entries}
    if isinstance(value, Symbol):
        return None if value.name == "null" else value.name
    if isinstance(value, Tagged):
        return _read_json(value.text) if value.tag == "json" else value.text
    if isinstance(value, Range | Measurement):
        raise ValueError(f"a {type(value).__name__.lower()} has no meaning here; write a number or a string")
    return value


def _scalar(value: Any) -> Scalar | None:
    if isinstance(value, str):
        return None if awkward(value) else str(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < _LARGEST else None
    if isinstance(value, float):
        return float(value) if math.isfinite(value) and (value == 0 or 1e-250 < abs(value) < 1e250) else None
    return None


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if awkward(text):
            text = json.dumps(value, allow_nan=False)
        exact = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not plain JSON: {error}") from error
    if not exact:
        raise ValueError("it would not come back from JSON as it is; use lists, dicts with text as keys, and scalars")
    return text


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a json`…` string that cannot be read: {error}") from error


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
