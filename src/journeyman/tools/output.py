"""Answers that are data: the JSON Schema an agent's answer must fit, and the Python type where one was given.

A model gives its answer as one JSON object, as arguments of ``finish`` or as text. What is not an object (a list, a
union, a number) is wrapped: ``{"output": …}``.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from journeyman.core.data import (
    OUTPUT_SCHEMA_BYTES,
    OUTPUT_SCHEMA_PARTS,
    OverBudgetError,
    check_containers,
    storable_json,
)
from journeyman.core.errors import (
    InvalidDataError,
    SignatureError,
    ToolDefinitionError,
    problem_text,
    validation_problems,
)
from journeyman.gram.references import expanded_size, outside_reference, with_schemas
from journeyman.gram.signature import read_signature, write_signature
from journeyman.tools.schema import PYDANTIC_ERRORS, QuietSchema, path_to_non_finite, strictly, tidy, why_no_schema
from journeyman.tools.tool import ArgumentsError, ForeignSchema

WRAPPER = "output"
"""The one property of an object around an answer that is no object itself."""

_FENCE = "```"
_NOT_WRAPPED = ("$defs", "$schema", "$id")
"""Keywords that belong at the root of a schema, or would give it another."""


def output_schema(wanted: Any) -> tuple[dict[str, Any], Any]:
    """The JSON Schema of what somebody wants as an answer, and the Python type if it is one.

    A JSON Schema is taken as it is; a text is a type in gram's text form, e.g. ``{name: Text, age: Maybe Int}``.
    Raises InvalidDataError.
    """
    if isinstance(wanted, Mapping):
        return check_schema(dict(wanted)), None
    if isinstance(wanted, str):
        try:
            return check_schema(read_signature(f"() --> {wanted}").returns or {}), None
        except SignatureError as error:
            rule = f"{wanted!r} is no type in gram's text form ({str(error).partition(': ')[2]})"
            raise InvalidDataError("Agent", [("output", rule)]) from None
    try:
        return tidy(_adapter(wanted).json_schema(schema_generator=QuietSchema)), wanted
    except (*PYDANTIC_ERRORS, TypeError) as error:
        fix = "give a JSON Schema, a pydantic model, a dataclass, a TypedDict or a type made of these"
        reason, fix = why_no_schema(error, fix)
        said = inspect.formatannotation(wanted)
        raise InvalidDataError("Agent", [("output", f"{said} has no JSON Schema ({reason}); {fix}")]) from error


def check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, if answers can be held to it. Raises InvalidDataError."""
    try:
        if (size := len(storable_json(schema))) > OUTPUT_SCHEMA_BYTES:
            raise ValueError(f"it has {size:,} bytes, at most {OUTPUT_SCHEMA_BYTES:,} are taken")
        if expanded_size(schema) > OUTPUT_SCHEMA_PARTS:
            raise ValueError(f"with its references it has more than {OUTPUT_SCHEMA_PARTS:,} parts")
        if (reference := outside_reference(schema)) is not None:
            raise ValueError(f"the reference {reference!r} leads out of the schema, and nothing is fetched")
        parameters = in_object(schema)
        ForeignSchema(parameters, where="output")
        write_signature(parameters, None)  # as ``finish`` needs it
    except (ValueError, ToolDefinitionError, PydanticSerializationError, RecursionError) as error:
        rule = str(error).partition("\n")[0].removeprefix("output: parameters are ")
        raise InvalidDataError("Agent", [("output", f"no JSON Schema that can be used: {rule}")]) from None
    return schema


def in_object(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself where it describes an object, else that of an object around it."""
    if schema.get("type") == "object" and isinstance(schema.get("properties", {}), dict):
        return schema
    inner = {key: value for key, value in schema.items() if key not in _NOT_WRAPPED}
    wrapped: dict[str, Any] = {
        "type": "object",
        "properties": {WRAPPER: _moved(inner)},
        "required": [WRAPPER],
        "additionalProperties": False,
    }
    if isinstance(definitions := schema.get("$defs"), dict):
        wrapped["$defs"] = {name: _moved(inner) for name, inner in definitions.items()}
    return wrapped


def _moved(schema: Any) -> Any:
    """A part of a schema whose references still find what they meant, one object further in."""
    if not isinstance(schema, dict):
        return schema
    moved = with_schemas(schema, _moved)
    if re.match(r"#(?!/\$defs/)(/|$)", reference := str(schema.get("$ref"))):
        moved["$ref"] = f"#/properties/{WRAPPER}{reference[1:]}"
    return moved


@lru_cache(maxsize=64)
def _kept_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    try:
        return _kept_adapter(kind)
    except TypeError:  # it cannot be hashed
        return TypeAdapter(kind)


@dataclass(frozen=True, eq=False)
class Output:
    """What an answer must be, and the gate it passes. For ``finish``, the schema of its arguments."""

    schema: dict[str, Any]
    kind: Any = None
    """The Python type; None where only the schema is known."""

    context_parameter: ClassVar[str | None] = None
    positional_only: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the object in which a model gives the answer."""
        return in_object(self.schema)

    @property
    def wrapped(self) -> bool:
        return self.parameters is not self.schema

    @cached_property
    def _foreign(self) -> ForeignSchema:
        return ForeignSchema(self.parameters, where="output")

    def read(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments of ``finish`` as JSON text in; no values and the same as plain JSON out. Raises ArgumentsError."""
        given = from_json(text)
        if not self.wrapped:
            return {}, self._checked(given)
        if given.keys() != {WRAPPER}:
            raise ArgumentsError(f"{WRAPPER}: missing (required), and nothing beside it is known")
        return {}, {WRAPPER: self._checked(given[WRAPPER])}

    def answer(self, text: str) -> Any:
        """A model's text in, the answer as plain data out. Raises ArgumentsError, which lists every problem.

        Where a text is wanted, what was written is one, whether or not it stands in quotes.
        """
        try:
            return self._from_json(_bare(text))
        except ArgumentsError:
            if self.wrapped:
                with contextlib.suppress(ArgumentsError):
                    return self._checked(text.strip())
            raise

    def _from_json(self, text: str) -> Any:
        try:
            check_containers(text)
            given = from_json(text, allow_inf_nan=False)
            storable_json(given)
        except OverBudgetError as error:
            raise ArgumentsError(f"the text {error}") from None
        except (ValueError, TypeError, RecursionError) as error:  # TypeError: half a surrogate pair
            raise ArgumentsError(f"the text is not JSON: {error}") from None
        if self.wrapped and isinstance(given, dict) and given.keys() == {WRAPPER}:
            given = given[WRAPPER]
        return self._checked(given)

    def value(self, plain: Any) -> Any:
        """Plain data that has passed, as a value of the type. Raises pydantic.ValidationError."""
        return plain if self.kind is None else _adapter(self.kind).validate_json(to_json(plain))

    def _checked(self, given: Any) -> Any:
        if self.kind is None:
            _, checked = self._foreign.read(to_json({WRAPPER: given} if self.wrapped else given).decode())
            return checked[WRAPPER] if self.wrapped else checked
        if (path := path_to_non_finite(given)) is not None:
            where = ".".join(map(str, path)) or WRAPPER
            raise ArgumentsError(f"{where}: must be a number that a float can hold")
        adapter = _adapter(self.kind)
        try:
            read = strictly(partial(adapter.validate_json, strict=True), to_json(given))
            return _with_defaults(adapter, given, read)
        except ValidationError as error:
            raise ArgumentsError(problem_text(validation_problems(error, whole=WRAPPER))) from None


def _with_defaults(adapter: TypeAdapter[Any], given: Any, value: Any) -> Any:
    """The data with all its defaults, if the type reads what it writes; else the data as it came."""
    try:
        written = adapter.dump_json(value, by_alias=True, warnings=False)
        same = bool(adapter.validate_json(written, strict=True) == value)
        plain = from_json(written, allow_inf_nan=False)
        storable_json(plain)
    except Exception:  # writing and comparing run the type's own code
        return given
    return plain if same else given


def _bare(text: str) -> str:
    """The JSON in a text: the text itself, or what stands in its only code block."""
    text = text.strip()
    parts = text.split(_FENCE, 3)
    if len(parts) != 3 or text[:1] in ("{", "["):
        return text
    language, _, block = parts[1].partition("\n")
    return (block if language.strip().isalnum() or not language.strip() else parts[1]).strip()
