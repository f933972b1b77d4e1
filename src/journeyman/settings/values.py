"""The kinds of values that a configuration has besides plain ones: durations, rates, texts that may hold secrets."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from journeyman.core.policy import MOST_SECONDS, RateLimit

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(ms|[smhdw])")
_RATE = re.compile(
    r"(\d{1,9})\s*/\s*(\d{1,9})?\s*(seconds?|sec|s|minutes?|min|m|hours?|h|days?|d)(\s+per\s+principal)?"
)
FOREVER = "forever"


class Section(BaseModel):
    """A part of the file. Unknown keys are refused, so that a typing error is no silent default."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)


def seconds_of(value: Any) -> Any:
    """A duration in words as a number; what is no text is left for whoever validates it."""
    if isinstance(value, bool):
        raise ValueError("must be a duration such as 90s, 30m, 12h or 7d")
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            raise ValueError("must be a duration such as 90s, 30m, 12h or 7d, or a number of seconds")
        return float(match[1]) * _UNITS[match[2]]
    return value


_DURATION_SCHEMA = {
    "anyOf": [{"type": "string", "pattern": r"^\d+(\.\d+)?\s*(ms|[smhdw])$"}, {"type": "number", "exclusiveMinimum": 0}]
}
Duration = Annotated[
    float,
    Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False),
    BeforeValidator(seconds_of),
    WithJsonSchema(_DURATION_SCHEMA),
]
"""``90s``, ``30m``, ``12h``, ``7d``, or a number of seconds."""


def _kept(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool) and value < _UNITS["h"]:
        raise ValueError(f"would be {value:g} seconds: write {value:g}d for days, or {value:g}s")
    return float("inf") if value == FOREVER else seconds_of(value)


Retention = Annotated[
    float,
    Field(gt=0),
    BeforeValidator(_kept),
    WithJsonSchema({"anyOf": [*_DURATION_SCHEMA["anyOf"], {"const": FOREVER}]}),
]
"""A duration, or ``forever``."""

SECRET_MARK = "x-journeyman-secret"
SecretText = Annotated[str, WithJsonSchema({"type": "string", SECRET_MARK: True})]
"""A text with ``${NAME}`` for environment variables, or ``file:PATH``: resolved when it is used, never kept."""

LATE = "late"
LateSecretText = Annotated[str, WithJsonSchema({"type": "string", SECRET_MARK: LATE})]
"""The same for one that a single command needs: no other asks whether what it names is there."""


_LONG_UNITS = {"per_second": 1.0, "per_minute": 60.0, "per_hour": 3_600.0, "per_day": 86_400.0}


def _rate(data: Any) -> Any:
    """``{per_minute: 30}`` is a rate, too."""
    if isinstance(data, RateLimit):
        return data
    if isinstance(data, dict):
        units = [name for name in data if name in _LONG_UNITS]
        if len(units) == 1 and "calls" not in data:
            rest = {name: value for name, value in data.items() if name != units[0]}
            return {"calls": data[units[0]], "seconds": _LONG_UNITS[units[0]], **rest}
        return {**data, "seconds": seconds_of(data["seconds"])} if "seconds" in data else data
    match = _RATE.fullmatch(data.strip()) if isinstance(data, str) else None
    if match is None:
        raise ValueError("must be a rate such as 20/min, 5/s or 100/10min")
    seconds = int(match[2] or 1) * _UNITS[match[3][0]]
    return {"calls": int(match[1]), "seconds": seconds, "per": "principal" if match[4] else "tool"}


RateText: TypeAlias = Annotated[
    RateLimit,
    BeforeValidator(_rate),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\d+\s*/\s*\d*\s*[a-z]+(\s+per\s+principal)?$", "examples": ["20/min"]},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "calls": {"type": "integer", "minimum": 1},
                        "seconds": _DURATION_SCHEMA,
                        "per": {"enum": ["tool", "principal"]},
                        "burst": {"type": "number", "minimum": 1, "maximum": 100},
                        **{unit: {"type": "integer", "minimum": 1} for unit in _LONG_UNITS},
                    },
                },
            ]
        }
    ),
]
"""So many calls in so long, written ``20/min``, ``5/s``, ``100/10min`` or ``20/min per principal``."""
