"""The gate that arguments pass: strictness, freezing, and what the model is told."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired
from uuid import UUID

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, ValidationError
from typing_extensions import TypedDict

from journeyman.tools.schema import FunctionSchema, argument_problems, function_schema
from journeyman.tools.tool import ArgumentsError


class Context:
    """Stands where a tool's context does."""


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    item: str
    price: float = Field(default=1.0, alias="unitPrice")


@dataclass
class Point:
    x: int
    y: float = 0.5


class Options(TypedDict):
    deep: bool
    colour: NotRequired[Colour]


class Pair(NamedTuple):
    left: int
    right: str = "r"


def schema_for(annotation: Any) -> FunctionSchema:
    def use(value):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    use.__annotations__ = {"value": annotation}
    return function_schema(use, context_type=Context)


def refused(annotation: Any, text: str) -> str:
    with pytest.raises(ArgumentsError) as caught:
        schema_for(annotation).read(f'{{"value": {text}}}')
    return str(caught.value)


def search(order_id: str, limit: int = 10, *, deep: bool = False, ratio: float = 0.5, tags: list[str] = []) -> None:  # noqa: B006
    """Search."""


SEARCH = function_schema(search, context_type=Context)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "5", 5),
        (float, "5", 5.0),
        (dt.datetime, '"2024-02-29T12:00:00Z"', dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)),
        (dt.date, '"2024-02-29"', dt.date(2024, 2, 29)),
        (dt.time, '"12:30:00"', dt.time(12, 30)),
        (dt.timedelta, '"PT90S"', dt.timedelta(seconds=90)),
        (UUID, '"12345678-1234-5678-1234-567812345678"', UUID(int=0x12345678123456781234567812345678)),
        (Decimal, '"1.50"', Decimal("1.50")),
        (Path, '"a/b"', Path("a/b")),
        (bytes, '"é"', "é".encode()),
        (Colour, '"red"', Colour.RED),
        (Level, "2", Level.HIGH),
        (set[int], "[1, 2]", {1, 2}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (Pair, '[1, "a"]', Pair(1, "a")),
        (Point, '{"x": 1}', Point(1)),
        (Options, '{"deep": true, "colour": "blue"}', {"deep": True, "colour": Colour.BLUE}),
        (Line, '{"item": "i", "unitPrice": 2}', Line(item="i", unitPrice=2.0)),
        (int | str, '"5"', "5"),
        (int | float, "5.0", 5.0),
        (str | None, "null", None),
    ],
)
def test_json_becomes_what_the_function_takes(annotation: Any, text: str, value: Any) -> None:
    found = schema_for(annotation).validate(f'{{"value": {text}}}')["value"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, '"5"'),
        (int, "5.5"),
        (int, "true"),
        (float, '"5"'),
        (float, "true"),
        (bool, "1"),
        (bool, '"yes"'),
        (str, "5"),
        (str, "null"),
        (dt.datetime, "1700000000"),
        (dt.date, '"tomorrow"'),
        (Colour, '"green"'),
        (Literal["a", "b"], '"c"'),
        (Literal[1, 2], "true"),
        (Literal["a", 1] | None, "true"),
        (Literal[True], "1"),
        (list[int], '"1,2"'),
        (list[int], '["1"]'),
        (dict[str, int], "[]"),
        (Line, '{"item": "i", "unitPrice": "2"}'),
        (Point, '{"x": "1"}'),
        (Options, "{}"),
    ],
)
def test_nothing_is_guessed(annotation: Any, text: str) -> None:
    assert refused(annotation, text).startswith("value")


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "5.0", 5),
        (int, "1e3", 1000),
        (int | None, "5.0", 5),
        (list[int], "[1, 2.0]", [1, 2]),
        (dict[str, list[int]], '{"int": [2.0]}', {"int": [2]}),
        (int | dict[str, int], '{"int": 5.0}', {"int": 5}),
        (Point, '{"x": 1.0, "y": 1.0}', Point(1, 1.0)),
        (Annotated[int, Field(ge=1)], "5.0", 5),
        (Literal[1, 2], "2.0", 2),
    ],
)
def test_an_integral_float_is_an_integer(annotation: Any, text: str, value: Any) -> None:
    assert schema_for(annotation).validate(f'{{"value": {text}}}')["value"] == value


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Literal[1, 2], "2", 2),
        (Literal[1] | bool, "true", True),
        (Literal[True, 2], "true", True),
        (Literal[1, "a"] | None, "null", None),
    ],
)
def test_what_is_listed_passes(annotation: Any, text: str, value: Any) -> None:
    assert schema_for(annotation).validate(f'{{"value": {text}}}')["value"] == value


def test_an_integral_float_does_not_hide_another_problem() -> None:
    with pytest.raises(ArgumentsError) as caught:
        SEARCH.read('{"limit": 5.0}')
    assert str(caught.value) == "order_id: missing (required); limit: must be an integer, got 5.0"
    assert refused(Annotated[int, Field(ge=9)], "5.0") == "value: must be an integer, got 5.0"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400])
@pytest.mark.parametrize(
    ("annotation", "around"),
    [
        (float, "%s"),
        (Any, "%s"),
        (Any, '{"a": [1, %s]}'),
        (list, "[%s]"),
        (dict[str, float], '{"a": %s}'),
        (Line, '{"item": "i", "unitPrice": %s}'),
        (float | None, "%s"),
    ],
)
def test_a_number_without_bounds_is_refused_everywhere(annotation: Any, around: str, number: str) -> None:
    assert "must be a finite number" in refused(annotation, around % number)


def test_words_that_look_like_numbers_are_words() -> None:
    assert schema_for(Any).validate('{"value": ["NaN", "1e999"]}') == {"value": ["NaN", "1e999"]}


def test_defaults_are_filled_in_and_frozen() -> None:
    values, frozen = SEARCH.read('{"order_id": "W-1"}')
    assert values == {"order_id": "W-1", "limit": 10, "deep": False, "ratio": 0.5, "tags": []}
    assert frozen == values
    assert list(frozen) == ["order_id", "limit", "deep", "ratio", "tags"]


def test_frozen_arguments_show_nested_defaults_and_aliases() -> None:
    _, frozen = schema_for(list[Line]).read('{"value": [{"item": "i"}]}')
    assert frozen == {"value": [{"item": "i", "unitPrice": 1.0}]}


def test_a_generated_default_is_frozen_too() -> None:
    numbers = iter(range(10))
    found = schema_for(Annotated[int, Field(default_factory=lambda: next(numbers))])
    values, frozen = found.read("{}")
    assert found.validate(json.dumps(frozen)) == values == {"value": 0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"text"',
        "{",
        '{"order_id": "\\ud800"}',
        '{"order_id": ' + "[" * 5000 + "]" * 5000 + "}",
        "{'a': 1}",
    ],
)
def test_what_is_not_an_object_is_refused_in_few_words(text: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        SEARCH.read(text)
    assert str(caught.value).startswith(("arguments: ", "order_id: "))
    assert len(str(caught.value)) < 300


def test_ten_megabytes_are_read_or_refused() -> None:
    huge = "x" * 10_000_000
    assert SEARCH.validate(json.dumps({"order_id": huge}))["order_id"] == huge
    with pytest.raises(ArgumentsError) as caught:
        SEARCH.read(json.dumps({"order_id": "a", "limit": huge}))
    assert len(str(caught.value)) < 200


def test_the_model_reads_every_problem_at_once() -> None:
    with pytest.raises(ArgumentsError) as caught:
        SEARCH.read('{"limit": "five", "deep": 1, "tags": ["a", 2], "colour": "red"}')
    assert str(caught.value) == (
        "order_id: missing (required); "
        'limit: must be an integer, got "five"; '
        "deep: must be a boolean, got 1; "
        "tags[1]: must be a string, got 2; "
        "colour: unknown argument (known: order_id, limit, deep, ratio, tags)"
    )


def test_ten_problems_are_enough() -> None:
    with pytest.raises(ArgumentsError) as caught:
        schema_for(list[int]).read(json.dumps({"value": ["x"] * 13}))
    assert str(caught.value).count("must be an integer") == 10
    assert str(caught.value).endswith("; and 3 more")


def test_rules_are_said_in_plain_words() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    assert refused(Annotated[int, Field(ge=1)], "0") == "value: must be greater than or equal to 1, got 0"
    assert refused(Literal["a", "b"], '"c"') == "value: must be 'a' or 'b', got \"c\""
    assert refused(Annotated[str, Field(max_length=2)], '"abc"').startswith("value: must have at most 2 characters")
    assert refused(Annotated[int, AfterValidator(even)], "3") == "value: must be even, got 3"
    assert refused(Point, "{}") == "value.x: missing (required)"


def test_a_long_value_is_shortened() -> None:
    message = refused(int, json.dumps({"a": ["long"] * 1000}))
    assert len(message.partition("got ")[2]) == 80
    assert message.endswith("…")


def test_problems_can_be_told_without_the_known_names() -> None:
    with pytest.raises(ValidationError) as caught:
        SEARCH.validate('{"order_id": "a", "more": 1}')
    assert argument_problems(caught.value) == "more: unknown argument (known: none)"


finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(codec="utf-8"), max_size=20)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | finite | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
aware = st.datetimes(min_value=dt.datetime(1900, 1, 1), timezones=st.just(dt.UTC)).map(dt.datetime.isoformat)

ROUND_TRIPS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (int, st.integers(-(2**70), 2**70)),
    "float": (float, finite | st.integers(-(2**53), 2**53)),
    "str": (str, text),
    "bool": (bool, st.booleans()),
    "any": (Any, anything),
    "dict": (dict[str, Any], st.dictionaries(text, anything, max_size=3)),
    "bytes": (bytes, text),
    "path": (Path, text.filter(lambda given: "\0" not in given)),
    "decimal": (Decimal, st.decimals(allow_nan=False, allow_infinity=False).map(str) | finite),
    "uuid": (UUID, st.uuids().map(str)),
    "datetime": (dt.datetime, aware),
    "date": (dt.date, st.dates().map(dt.date.isoformat)),
    "time": (dt.time, st.times().map(dt.time.isoformat)),
    "timedelta": (dt.timedelta, st.integers(0, 10**6).map("PT{}S".format)),
    "enum": (Colour, st.sampled_from(["red", "blue"])),
    "int enum": (Level, st.sampled_from([1, 2])),
    "literal": (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    "set": (set[int], st.lists(st.integers(0, 9))),
    "tuple": (tuple[int, str], st.tuples(st.integers(), text)),
    "named tuple": (Pair, st.tuples(st.integers(), text)),
    "typed dict": (Options, st.fixed_dictionaries({"deep": st.booleans()}, optional={"colour": st.just("red")})),
    "model": (list[Line], st.lists(st.fixed_dictionaries({"item": text}, optional={"unitPrice": finite}))),
    "dataclass": (Point, st.fixed_dictionaries({"x": st.integers()}, optional={"y": finite})),
    "union": (int | str | list[Point] | None, st.integers() | text | st.none() | st.just([{"x": 1}])),
    "keyed": (dict[Colour, int], st.dictionaries(st.sampled_from(["red", "blue"]), st.integers())),
}
SCHEMAS = {name: schema_for(annotation) for name, (annotation, _) in ROUND_TRIPS.items()}


@pytest.mark.parametrize("name", ROUND_TRIPS)
@given(data=st.data())
def test_what_was_frozen_validates_to_the_same_values(name: str, data: st.DataObject) -> None:
    schema = SCHEMAS[name]
    values, frozen = schema.read(json.dumps({"value": data.draw(ROUND_TRIPS[name][1])}))
    again = json.dumps(frozen, allow_nan=False)
    assert schema.validate(again) == values
    assert jsonschema_rs.is_valid(schema.parameters, json.loads(again))


@given(value=anything)
def test_whatever_passes_conforms_to_the_published_schema(value: Any) -> None:
    for name, schema in SCHEMAS.items():
        if isinstance(value, bool) and name in ("int enum", "literal"):
            continue  # True equals 1 in Python; the function is given the member, which is the integer
        try:
            schema.validate(json.dumps({"value": value}))
        except ValidationError:
            continue
        assert jsonschema_rs.is_valid(schema.parameters, {"value": value}), name


def test_largest_floats_are_finite() -> None:
    largest = 1.7976931348623157e308
    assert math.isfinite(schema_for(float).validate(json.dumps({"value": largest}))["value"])
    assert schema_for(float).validate(json.dumps({"value": int(largest)})) == {"value": largest}
