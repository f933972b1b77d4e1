"""From a function to its JSON Schema: what is published, and which functions are refused."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import socket
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NewType, Optional, Union
from uuid import UUID

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field, SecretStr
from typing_extensions import TypeAliasType, TypedDict

from journeyman.core.errors import ToolDefinitionError
from journeyman.tools.schema import FunctionSchema, function_schema

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]


class Context:
    """Stands where a tool's context does."""


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    """Where somebody lives."""

    title: str = Field(description="Mr or Ms")
    city: str = "Bern"


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    deep: bool


class Pair(NamedTuple):
    left: int
    right: str


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Undefined(BaseModel):
    it: NeverDefined  # type: ignore[name-defined] # noqa: F821


OrderId = NewType("OrderId", str)
Tags = TypeAliasType("Tags", list[str])


def schema_of(function: Any, *, skip_first: bool = False) -> FunctionSchema:
    return function_schema(function, context_type=Context, skip_first=skip_first)


def parameters_of(function: Any) -> dict[str, Any]:
    return schema_of(function).parameters


def refusal(function: Any) -> str:
    with pytest.raises(ToolDefinitionError) as caught:
        schema_of(function)
    return str(caught.value)


def test_a_plain_function_is_described_whole() -> None:
    def look_up(order_id: str, limit: int = 10, *, deep: bool = False) -> dict[str, int]:
        """Look up an order.

        Args:
            order_id: The number.
            unheard_of: Not a parameter.
        """
        raise NotImplementedError

    found = schema_of(look_up)
    assert found.parameters == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "The number."},
            "limit": {"type": "integer", "default": 10},
            "deep": {"type": "boolean", "default": False},
        },
        "required": ["order_id"],
        "additionalProperties": False,
    }
    assert found.returns == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert found.documentation.description == "Look up an order."
    assert (found.context_parameter, found.positional_only) == (None, ())


def test_a_function_without_arguments_is_fine() -> None:
    def now():  # type: ignore[no-untyped-def]
        raise NotImplementedError

    found = schema_of(now)
    assert found.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert found.returns is None
    assert found.validate("{}") == {}


TYPES: list[tuple[Any, dict[str, Any]]] = [
    (Any, {}),
    (list, {"type": "array", "items": {}}),
    (dict, {"type": "object", "additionalProperties": True}),
    (tuple, {"type": "array", "items": {}}),
    (set, {"type": "array", "items": {}}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Colour, {"type": "string", "enum": ["red", "blue"]}),
    (Literal["a", 1], {"enum": ["a", 1]}),
    (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
    (str | Callable[[], None], {"type": "string"}),
    (OrderId, {"type": "string"}),
    (Tags, {"type": "array", "items": {"type": "string"}}),
    (list[Tags], {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
    ("list['Colour']", {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (Path, {"type": "string", "format": "path"}),
    (bytes, {"type": "string", "format": "binary"}),
    (Options, {"type": "object", "properties": {"deep": {"type": "boolean"}}}),
    (
        Point,
        {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
            "required": ["x"],
        },
    ),
    (
        Pair,
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
    ),
    (
        list[Address],
        {
            "type": "array",
            "items": {
                "type": "object",
                "description": "Where somebody lives.",
                "properties": {
                    "title": {"type": "string", "description": "Mr or Ms"},
                    "city": {"type": "string", "default": "Bern"},
                },
                "required": ["title"],
            },
        },
    ),
]


@pytest.mark.parametrize(("annotation", "expected"), TYPES, ids=[str(annotation) for annotation, _ in TYPES])
def test_a_type_has_its_schema(annotation: Any, expected: dict[str, Any]) -> None:
    def use(value):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    use.__annotations__ = {"value": annotation}
    found = parameters_of(use)
    assert found["properties"]["value"] == expected
    assert "$defs" not in found
    jsonschema_rs.Draft202012Validator(found)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is newer than this Python")
def test_the_newer_alias_and_generic_syntax_work() -> None:
    names: dict[str, Any] = {}
    exec("type Names = list[str]\ndef use[T](names: Names, other: T): ...", names)
    assert parameters_of(names["use"])["properties"] == {
        "names": {"type": "array", "items": {"type": "string"}},
        "other": {},
    }


def test_a_recursive_model_keeps_its_definition_and_nothing_else_does() -> None:
    def plant(root: Node, place: Address) -> Node:
        raise NotImplementedError

    found = schema_of(plant)
    assert found.parameters["properties"]["root"] == {"$ref": "#/$defs/Node"}
    assert set(found.parameters["$defs"]) == {"Node"}
    assert found.parameters["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert "title" in found.parameters["properties"]["place"]["properties"]
    assert found.returns is not None
    assert found.returns["$ref"] == "#/$defs/Node"
    tree = '{"root": {"name": "a", "children": [{"name": "b"}]}, "place": {"title": "Ms"}}'
    assert found.validate(tree)["root"] == Node(name="a", children=[Node(name="b")])


def test_a_discriminated_union_has_no_dangling_references() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    def pet(animal):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    pet.__annotations__ = {"animal": Annotated[Cat | Dog, Field(discriminator="kind")]}
    assert "$defs" not in str(parameters_of(pet))
    assert schema_of(pet).validate('{"animal": {"kind": "dog"}}') == {"animal": Dog(kind="dog")}


def test_a_default_that_looks_like_a_schema_is_left_alone() -> None:
    def use(value: dict[str, Any] = {"title": "x"}) -> None:  # noqa: B006
        raise NotImplementedError

    assert parameters_of(use)["properties"]["value"]["default"] == {"title": "x"}


def test_annotations_say_bounds_descriptions_and_defaults() -> None:
    def use(
        limit: Annotated[int, Field(ge=1, le=9, description="How many.", default=5)],
        name: Annotated[str, "Whose it is."],
        place: Annotated[Address, "Where to."],
        note: str = Field("none", max_length=20, description="Anything."),
        stamp: Annotated[list[int], Field(default_factory=lambda: [1])] = Field(),  # noqa: B008
    ) -> None:
        """Do.

        Args:
            limit: The docstring loses.
            name: Here too.
            stamp: And wins where nobody else speaks.
        """

    found = schema_of(use)
    properties = found.parameters["properties"]
    assert properties["limit"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "How many.",
        "default": 5,
    }
    assert properties["name"]["description"] == "Whose it is."
    assert properties["place"]["description"] == "Where to."
    assert properties["note"] == {"type": "string", "maxLength": 20, "description": "Anything.", "default": "none"}
    assert properties["stamp"]["description"] == "And wins where nobody else speaks."
    assert found.parameters["required"] == ["name", "place"]
    values = found.validate('{"name": "n", "place": {"title": "Ms"}}')
    assert (values["limit"], values["note"], values["stamp"]) == (5, "none", [1])


SENTINEL = object()


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (str, SENTINEL),
        (str, None),
        (float, float("inf")),
        (Any, float("nan")),
        (Path, "."),
        (Any, (1, 2)),
        (bytes, b"\xff"),
        (list[Any], [SENTINEL]),
    ],
)
def test_a_default_that_json_cannot_say_is_used_and_not_told(annotation: Any, default: Any) -> None:
    def use(value=default):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    use.__annotations__ = {"value": annotation}
    found = schema_of(use)
    assert "default" not in found.parameters["properties"]["value"]
    assert "required" not in found.parameters
    values = found.validate("{}")
    assert values["value"] is default
    assert found.freeze(values) == {}


@pytest.mark.parametrize(
    ("annotation", "default", "said"),
    [
        (str | None, None, None),
        (Colour, Colour.RED, "red"),
        (Address, Address(title="Ms"), {"title": "Ms", "city": "Bern"}),
        (Point, Point(1), {"x": 1, "y": 0}),
        (Decimal, Decimal("1.50"), "1.50"),
        (dt.date, dt.date(2024, 2, 29), "2024-02-29"),
        (float, 1, 1.0),
        (tuple[int, ...], (1, 2), [1, 2]),
    ],
)
def test_a_default_that_json_can_say_is_told(annotation: Any, default: Any, said: Any) -> None:
    def use(value=default):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    use.__annotations__ = {"value": annotation}
    found = schema_of(use)
    assert found.parameters["properties"]["value"]["default"] == said
    assert found.freeze(found.validate("{}")) == {"value": said}


def test_calls_do_not_share_a_mutable_default() -> None:
    def use(tags: list[str] = []) -> None:  # noqa: B006
        raise NotImplementedError

    found = schema_of(use)
    found.validate("{}")["tags"].append("mine")
    assert found.validate("{}") == {"tags": []}


def test_a_bound_method_and_an_unbound_one_hide_the_instance() -> None:
    class Shop:
        async def order(self, item: str) -> None:
            """Order it."""

    for found in (schema_of(Shop().order), schema_of(Shop.order, skip_first=True)):
        assert list(found.parameters["properties"]) == ["item"]
        assert found.documentation.description == "Order it."
        assert found.returns == {"type": "null"}


def test_an_object_with_call_is_described_by_it_or_by_its_class() -> None:
    class Adder:
        """Adds."""

        def __call__(self, a: int, b: int) -> int:
            return a + b

    class Documented(Adder):
        def __call__(self, a: int, b: int) -> int:
            """Adds with care."""
            return a + b

    assert list(parameters_of(Adder())["properties"]) == ["a", "b"]
    assert schema_of(Adder()).documentation.description == "Adds."
    assert schema_of(Documented()).documentation.description == "Adds with care."


def test_what_a_partial_binds_is_no_longer_the_models_choice() -> None:
    def send(connection: socket.socket, to: str, text: str, times: int = 1) -> None:
        """Send."""

    with socket.socket() as connection:
        by_name = schema_of(functools.partial(send, connection=connection, times=3))
        by_place = schema_of(functools.partial(functools.partial(send, connection), times=3))
    for found in (by_name, by_place):
        assert list(found.parameters["properties"]) == ["to", "text"]
        assert found.documentation.description == "Send."


def test_a_wrapped_function_is_described_as_itself() -> None:
    def inner(colour: Colour) -> None:
        """Paint."""

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> None:
        raise NotImplementedError

    assert parameters_of(outer)["properties"]["colour"]["enum"] == ["red", "blue"]


def test_the_context_is_hidden_however_it_is_written() -> None:
    def plain(a: int, context: Context) -> None: ...
    def optional(a: int, *, context: Context | None = None) -> None: ...
    def noted(context: Annotated[Context, "the call"], /, a: int) -> None: ...

    for function in (plain, optional, noted):
        found = schema_of(function)
        assert found.context_parameter == "context"
        assert list(found.parameters["properties"]) == ["a"]
    assert schema_of(noted).positional_only == ("context",)


def test_a_context_imported_for_the_type_checker_only_is_found() -> None:
    def use(call):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    class CallContext: ...

    use.__annotations__ = {"call": "CallContext"}
    assert function_schema(use, context_type=CallContext).context_parameter == "call"


def test_positional_only_parameters_are_named_in_order() -> None:
    def use(b: int, a: int, /, c: int) -> None: ...

    assert schema_of(use).positional_only == ("b", "a")


def test_any_parameter_name_is_allowed() -> None:
    def use(json: str, copy: int, model_config: str, _private: int, schema: str = "x") -> None: ...

    found = schema_of(use)
    given = {"json": "j", "copy": 1, "model_config": "m", "_private": 2, "schema": "s"}
    assert found.validate('{"json":"j","copy":1,"model_config":"m","_private":2,"schema":"s"}') == given


def test_a_result_nobody_can_describe_is_no_obstacle() -> None:
    def opened() -> socket.socket: ...  # type: ignore[empty-body]
    def missing() -> Missing: ...

    assert schema_of(opened).returns is None
    assert schema_of(missing).returns is None


def test_a_result_is_described_as_it_is_written_out() -> None:
    def price() -> Decimal:
        raise NotImplementedError

    returns = schema_of(price).returns
    assert returns is not None
    assert returns["type"] == "string"


def unannotated(a, b: int): ...  # type: ignore[no-untyped-def]
def star(*args: int) -> None: ...
def double_star(**options: int) -> None: ...
def unresolved(a: Missing) -> None: ...
def has_socket(a: int, b: list[socket.socket]) -> None: ...
def has_callable(a: Callable[[], int]) -> None: ...
def has_socket_default(a: socket.socket | None = None) -> None: ...
def two_contexts(a: Context, b: Context | None) -> None: ...
def undefined_field(a: Undefined) -> None: ...
def secret(token: SecretStr) -> None: ...


@pytest.mark.parametrize(
    ("function", "named", "fix"),
    [
        (unannotated, "'a'", "'a: str'"),
        (star, "'*args'", "list"),
        (double_star, "'**options'", "dict"),
        (unresolved, "'Missing'", "TYPE_CHECKING"),
        (has_socket, "list[socket.socket]", "functools.partial"),
        (has_callable, "'a'", "dataclass"),
        (has_socket_default, "'a'", "dataclass"),
        (two_contexts, "'a' and 'b'", "keep one"),
        (undefined_field, "'a'", "define every name"),
        (secret, "'token'", "context"),
    ],
)
def test_a_refusal_names_the_function_the_parameter_and_the_fix(function: Any, named: str, fix: str) -> None:
    message = refusal(function)
    assert message.startswith(f"{__name__}.{function.__name__}: ")
    assert named in message
    assert fix in message


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes typing.TypedDict from 3.12 on")
def test_the_older_typed_dict_is_refused_with_the_import_to_write() -> None:
    class Old(typing.TypedDict):
        a: int

    def use(options):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    use.__annotations__ = {"options": list[Old]}
    message = refusal(use)
    assert "'options'" in message
    assert "typing_extensions" in message


def test_what_is_not_a_function_is_refused() -> None:
    assert "is not callable" in refusal(42)
    assert "pass an instance" in refusal(Address)
    assert "is a class" in refusal(int)
    assert "wrap it in a function" in refusal(getattr)
