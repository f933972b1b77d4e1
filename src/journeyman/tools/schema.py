"""From a Python function to the JSON Schema a model sees and the gate its arguments pass.

Nothing here calls the function. What it says about itself is read in ``callables``.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pydantic import GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import InitErrorDetails, SchemaError, core_schema, from_json, to_json

from journeyman.core.data import LISTED_PROBLEMS, may_overflow
from journeyman.core.errors import ToolDefinitionError, problem_text, validation_problems
from journeyman.gram.references import schemas_in, with_schemas
from journeyman.tools.callables import EMPTY, Documentation, Parameter, Signature, read_callable, read_docstring
from journeyman.tools.tool import ArgumentsError

T = TypeVar("T")
_LARGEST_FLOAT = int(math.ldexp(1 - 2**-53, 1024))
_UNSAID: Any = object()
_PREFIX = "#/$defs/"
# Of these, ``uniqueItems`` comes from sets, which take duplicates and drop them.
_NOISE = frozenset({"title", "discriminator", "uniqueItems"})
PYDANTIC_ERRORS = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError)


@dataclass(frozen=True, eq=False)
class FunctionSchema:
    """A function as a model sees it, and the gate its arguments pass."""

    parameters: dict[str, Any]
    """JSON Schema of the arguments object."""
    returns: dict[str, Any] | None
    """JSON Schema of the result; None where the annotation is missing or has no JSON Schema."""
    documentation: Documentation
    context_parameter: str | None
    """The parameter that takes the call's context; hidden from the model."""
    positional_only: tuple[str, ...]
    """Names that must be passed positionally, in order; the context's may be among them."""
    _adapter: TypeAdapter[dict[str, Any]] = field(repr=False)
    _unsaid: dict[str, Any] = field(repr=False)
    """Defaults that JSON cannot say, by parameter."""
    _choices: dict[str, list[Any]] = field(repr=False)
    """What parameters can be that take one of a few values with a truth value or a number among them."""

    def validate(self, text: str | bytes) -> dict[str, Any]:
        """JSON text in, the function's values out, defaults filled in. Raises pydantic.ValidationError."""
        return strictly(self._check, text)

    def freeze(self, values: dict[str, Any]) -> dict[str, Any]:
        """Validated values as plain JSON: what an approver sees, and what validates to the same values again."""
        if self._unsaid:
            values = {name: value for name, value in values.items() if value is not self._unsaid.get(name, _UNSAID)}
        frozen: dict[str, Any] = self._adapter.serializer.to_python(values, mode="json", by_alias=True, warnings=False)
        return frozen

    def read(self, text: str | bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        """JSON text in; the function's values and the same as plain JSON out. Raises ArgumentsError."""
        try:
            values = self.validate(text)
        except ValidationError as error:
            raise ArgumentsError(argument_problems(error, known=self.parameters["properties"])) from error
        return values, self.freeze(values)

    def _check(self, text: str | bytes) -> dict[str, Any]:
        values: dict[str, Any] = self._adapter.validator.validate_json(text, strict=True)
        if not self._choices and isinstance(text, str) and not may_overflow(text):
            return values
        given = from_json(text)
        path = path_to_non_finite(given)
        if path is not None:
            details = InitErrorDetails(type="finite_number", loc=path, input="a number beyond all bounds")
            raise ValidationError.from_exception_data("arguments", [details])
        for name, choices in self._choices.items():
            if name in given and _is_mistaken(given[name], choices):
                expected = {"expected": " or ".join(map(json.dumps, choices))}
                refused = InitErrorDetails(type="literal_error", loc=(name,), input=given[name], ctx=expected)
                raise ValidationError.from_exception_data("arguments", [refused])
        return values


def function_schema(function: Callable[..., Any], *, context_type: type, skip_first: bool = False) -> FunctionSchema:
    """Describe a function. Raises ToolDefinitionError, which names the function, the parameter and the fix.

    ``context_type`` annotates the one parameter that is hidden from the model; ``skip_first`` leaves out the first
    parameter of a method that is not bound yet.
    """
    signature = read_callable(function, context_type=context_type, skip_first=skip_first)
    documentation = read_docstring(signature.docstring)
    try:
        defaults = {p.name: _default_as_json(p) for p in signature.parameters if p.default is not EMPTY}
        unsaid = {p.name: p.default for p in signature.parameters if defaults.get(p.name) is _UNSAID}
        adapter = _arguments_adapter(signature, unsaid)
        schema = tidy(adapter.json_schema(schema_generator=QuietSchema))
    except PYDANTIC_ERRORS as error:
        for parameter in signature.parameters:
            _check_annotation(parameter, signature.name)
        raise ToolDefinitionError(f"{signature.name}: its parameters have no JSON Schema ({error})") from error
    for parameter in signature.parameters:
        described = schema["properties"][parameter.name]
        _refuse_secret(described, parameter, signature.name)
        described.pop("default", None)
        if defaults.get(parameter.name, _UNSAID) is not _UNSAID:
            described["default"] = defaults[parameter.name]
        description = parameter.description or documentation.parameters.get(parameter.name)
        if description:
            described["description"] = description
    return FunctionSchema(
        parameters=schema,
        returns=_returns_schema(signature.returns),
        documentation=documentation,
        context_parameter=signature.context_parameter,
        positional_only=signature.positional_only,
        _adapter=adapter,
        _unsaid=unsaid,
        _choices={name: listed for name, each in schema["properties"].items() if (listed := _choices_of(each))},
    )


def argument_problems(error: ValidationError, *, known: Iterable[str] = ()) -> str:
    """What is wrong with some arguments, for the model that wrote them; ``known`` are the names it may use."""
    unknown = f"unknown argument (known: {', '.join(known) or 'none'})"
    return problem_text(validation_problems(error, whole="arguments", unknown=unknown))


class QuietSchema(GenerateJsonSchema):
    """A nested default or a union's member that JSON cannot say is left out, and nobody is warned."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        pass


def _arguments_adapter(signature: Signature, unsaid: dict[str, Any]) -> TypeAdapter[dict[str, Any]]:
    """A validator of one object with the parameters as its keys. Unlike a model it allows every name."""

    class Arguments:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
            fields = {}
            for parameter in signature.parameters:
                inner = handler.generate_schema(parameter.annotation)
                factory = parameter.default_factory
                if parameter.name in unsaid:
                    # Pydantic copies what cannot be hashed; what JSON cannot say must stay known by its identity.
                    factory = partial(lambda value: value, parameter.default)
                if factory is not None:
                    inner = core_schema.with_default_schema(inner, default_factory=factory)
                elif parameter.default is not EMPTY:
                    inner = core_schema.with_default_schema(inner, default=parameter.default)
                fields[parameter.name] = core_schema.typed_dict_field(inner, required=parameter.required)
            return core_schema.typed_dict_schema(fields, extra_behavior="forbid")

    adapter: TypeAdapter[Any] = TypeAdapter(Arguments)
    return adapter


def _default_as_json(parameter: Parameter) -> Any:
    """The default as the schema can state it, or ``_UNSAID`` where reading it back gives something else."""
    adapter: TypeAdapter[Any] = TypeAdapter(parameter.annotation)
    try:
        text = adapter.dump_json(parameter.default, by_alias=True, warnings="error")
        same = bool(adapter.validate_json(text, strict=True) == parameter.default)
        return from_json(text, allow_inf_nan=False) if same else _UNSAID
    except PydanticUserError:
        raise
    except Exception:  # comparing and dumping run the default's own code
        return _UNSAID


def _returns_schema(annotation: Any) -> dict[str, Any] | None:
    if annotation is EMPTY:
        return None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        return tidy(adapter.json_schema(schema_generator=QuietSchema, mode="serialization"))
    except PYDANTIC_ERRORS:
        return None


def _check_annotation(parameter: Parameter, function: str) -> None:
    try:
        TypeAdapter(parameter.annotation).json_schema(schema_generator=QuietSchema)
    except PYDANTIC_ERRORS as error:
        said = inspect.formatannotation(parameter.annotation)
        fix = "take a JSON type, a dataclass or a pydantic model instead, or bind the value with functools.partial"
        if isinstance(error, PydanticUndefinedAnnotation) or "not fully defined" in str(error):
            fix = "define every name it uses before the tool"
        reason, fix = why_no_schema(error, fix)
        raise ToolDefinitionError(
            f"{function}: the annotation {said} of parameter {parameter.name!r} has no JSON Schema ({reason}); {fix}"
        ) from error


def _refuse_secret(schema: dict[str, Any], parameter: Parameter, function: str) -> None:
    if '"writeOnly": true' in json.dumps(schema):
        raise ToolDefinitionError(
            f"{function}: parameter {parameter.name!r} is a secret, which a model must not hold and an approver "
            "cannot see; take secrets from the tool's context"
        )


_FINITE = frozenset({str, bool, type(None)})


def path_to_non_finite(value: Any) -> tuple[str | int, ...] | None:
    """Where the first number is that no float can hold: JSON has no word for it, so it would not survive freezing."""
    kind = type(value)
    if kind is float:
        return None if math.isfinite(value) else ()
    if kind is int:
        return None if -_LARGEST_FLOAT <= value <= _LARGEST_FLOAT else ()
    for key, inner in value.items() if kind is dict else enumerate(value) if kind is list else ():
        if type(inner) in _FINITE:
            continue
        path = path_to_non_finite(inner)
        if path is not None:
            return (key, *path)
    return None


def strictly(check: Callable[[str | bytes], T], text: str | bytes) -> T:
    """What a check makes of JSON text, with whole numbers for 5.0 where only that was refused."""
    try:
        return check(text)
    except ValidationError as error:
        repaired = _with_integers(text, error)
        if repaired is None:
            raise
        try:
            return check(repaired)
        except ValidationError:
            raise error from None


def why_no_schema(error: Exception, fix: str) -> tuple[str, str]:
    """Why a type has no JSON Schema, and what to do about it: ``fix``, unless there is something nearer."""
    if getattr(error, "code", None) == "typed-dict-version":
        fix = "import TypedDict from typing_extensions; the one in typing serves from Python 3.12 on"
    return re.split(r"[.;\n]\s", str(error), maxsplit=1)[0], fix


def _with_integers(text: str | bytes, error: ValidationError) -> bytes | None:
    """The arguments with 5 for 5.0 wherever that was refused: to JSON Schema they are the same number."""
    if error.error_count() > LISTED_PROBLEMS:
        return None
    problems = error.errors(include_url=False, include_context=False)
    places: list[tuple[Any, ...]] = [
        each["loc"] for each in problems if type(each["input"]) is float and each["input"].is_integer()
    ]
    if not places:
        return None
    whole = [from_json(text)]
    for place in places:
        holder: Any = whole
        key: Any = 0
        value: Any = whole[0]
        for step in place:
            # A step that leads nowhere is the name of a union's member.
            known = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
            if step in known:
                holder, key, value = value, step, value[step]
        if type(value) is float and value.is_integer():
            holder[key] = int(value)
    return to_json(whole[0])


# -- JSON Schemas made short, and what they list


def tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, shorter: no titles, and definitions where they are used. The given one is left as it is.

    A definition that contains itself has no such place; it stays under ``$defs``.
    """
    definitions = schema.get("$defs", {})
    recursive = {name for name in definitions if name in _reachable(name, definitions)}
    inline = {name: schema for name, schema in definitions.items() if name not in recursive}
    tidied = _tidy({key: value for key, value in schema.items() if key != "$defs"}, inline)
    if recursive:
        tidied["$defs"] = {name: _tidy(definitions[name], inline) for name in definitions if name in recursive}
    return tidied


def model_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """A pydantic model's schema as that of a tool's parameters."""
    return tidy({key: value for key, value in schema.items() if key not in ("title", "description", "$schema")})


def _tidy(schema: dict[str, Any], inline: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").removeprefix(_PREFIX)
    if name in inline:
        # What stands beside the reference is about this use of it, so it wins.
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _tidy({**inline[name], **beside}, inline)
    # Only schemas are entered: a default or an enum may well hold a "title" of its own.
    plain = {key: value for key, value in schema.items() if key not in _NOISE}
    return with_schemas(plain, lambda inner: _tidy(inner, inline))


def _reachable(name: str, definitions: dict[str, Any]) -> set[str]:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        held = (inner.get("$ref") for inner in schemas_in(definitions[waiting.pop()]))
        new = {str(reference).removeprefix(_PREFIX) for reference in held} & definitions.keys() - reached
        reached |= new
        waiting += new
    return reached


def _choices_of(schema: dict[str, Any]) -> list[Any]:
    """The values a schema lists, where Python could take one of them for another: to Python, True is 1."""
    listed: list[Any] = []
    for member in schema.get("anyOf", [schema]):
        if "enum" not in member and "const" not in member and member.get("type") != "null":
            return []
        listed += member.get("enum", [member.get("const")])
    return listed if any(isinstance(value, int) for value in listed) else []


def _is_mistaken(value: Any, choices: list[Any]) -> bool:
    """Whether a truth value passes for a number among the choices, or the other way round."""
    same = [choice for choice in choices if choice == value]
    return bool(same) and all(isinstance(choice, bool) is not isinstance(value, bool) for choice in same)
