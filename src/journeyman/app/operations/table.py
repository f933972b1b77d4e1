"""What an operation is, the table of all of them, and the kinds of values that several of them take or return."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from journeyman.app.desk import Desk, InvalidInputError
from journeyman.core.data import OverBudgetError, canonical_json, check_arguments, storable_json

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

PAGE_SIZE = 50
LARGEST_PAGE = 200
MOST_AT_HAND = 10_000
MOST_FOUND = 50
"""By a search that puts the best first: of all others it is not told how many there are."""
MOST_FIELDS = 1_000
_MODULES = ("approvals", "experiments", "gaps", "memory", "playbooks", "replays", "runs", "service", "tasks")
_TABLE: dict[str, Operation[..., Any]] = {}


# --- operations


@dataclass(frozen=True, slots=True)
class Input:
    """One value that an operation takes."""

    name: str
    kind: Any
    """Its type, with what it must hold to."""
    default: Any
    """``inspect.Parameter.empty`` where it must be given."""
    info: FieldInfo
    """Its description and its examples."""

    @classmethod
    def of(cls, name: str, kind: Any, default: Any) -> Self:
        return cls(name, kind, default, FieldInfo.from_annotation(kind))

    @property
    def is_body(self) -> bool:
        """Whether it is an object of several values of their own."""
        return isinstance(self.kind, type) and issubclass(self.kind, Body)


@dataclass(frozen=True)
class Operation(Generic[P, R]):
    """Something that can be done. Called with a desk, it is done as that desk's principal may do it."""

    name: str
    summary: str
    permission: str | None
    """What its caller must hold before anything is looked at; None where that depends on whose it is."""
    work: Callable[Concatenate[Desk, P], Awaitable[R]] = field(repr=False)

    async def __call__(self, desk: Desk, *args: P.args, **values: P.kwargs) -> R:
        if self.permission is not None:
            desk.must_hold(self.permission)
        if self._paging and "paging" not in values:
            given: dict[str, Any] = {item.name: values.pop(item.name, item.default) for item in self._paging}
            values["paging"] = Paging(**given)
        return await self.work(desk, *args, **values)

    @property
    def description(self) -> str:
        """What is to be known beyond the summary."""
        needs = "" if self.permission is None else f"Needs the permission '{self.permission}'."
        return f"{needs} {inspect.getdoc(self.work) or ''}".strip()

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.work, include_extras=True)

    @cached_property
    def _paging(self) -> tuple[Input, ...]:
        """What says which part of a list is wanted."""
        if (kind := self._hints.get("paging")) is None:
            return ()
        (limit, *offset), default = kind.__metadata__, inspect.signature(self.work).parameters["paging"].default
        return replace(limit, default=default.limit), Input.of("after", After, None), *offset

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        taken: list[Input] = []
        for name, parameter in list(inspect.signature(self.work).parameters.items())[1:]:
            taken += self._paging if name == "paging" else [Input.of(name, self._hints[name], parameter.default)]
        return tuple(taken)

    @property
    def output(self) -> Any:
        """The type of what it returns; None where there is nothing to tell."""
        return self._hints["return"]


def operation(
    name: str, summary: str, *, permission: str | None = None
) -> Callable[[Callable[Concatenate[Desk, P], Awaitable[R]]], Operation[P, R]]:
    """Put a function into the table: NOUN.VERB, and what it does in a line."""

    def made(work: Callable[Concatenate[Desk, P], Awaitable[R]]) -> Operation[P, R]:
        entry = Operation(name, summary, permission, work)
        _TABLE[name] = entry
        return entry

    return made


def table() -> Mapping[str, Operation[..., Any]]:
    """Every operation by its name. Whoever needs one imports its module and not all of them."""
    for module in _MODULES:
        import_module(f"journeyman.app.operations.{module}")
    return dict(sorted(_TABLE.items()))


# --- kinds of values


class Body(BaseModel):
    """Several values that are given together. One that nobody knows is an error and not a silent default."""

    model_config = ConfigDict(extra="forbid")


def _storable(value: T) -> T:
    storable_json(value)
    return value


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("what is looked for has no NUL character")
    return value


def worded(message: str) -> AfterValidator:
    """For a text that says something; ``message`` tells whoever has given none."""

    def check(value: str) -> str:
        if not value.strip() or "\0" in value:
            raise ValueError(message)
        return value

    return AfterValidator(check)


WITH_A_LETTER = r"^[^\x00]*[^\x00\s\x1c-\x1f\x85][^\x00]*$"
"""For documents of an API: what ``Worded`` takes, whose message says more than a pattern does."""
Worded = Annotated[str, worded("it needs a letter, and no NUL character")]
"""A text that says something."""
Sought = Annotated[str, AfterValidator(_without_nul)]
"""A text that is looked for."""
Id = Annotated[str, Field(min_length=1, max_length=128, examples=["task_0192f3c2a1b4d6e8f0a1b2c3"])]
SessionId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+$", examples=["sess-1"])]
Object = Annotated[dict[str, Any], AfterValidator(_storable)]
"""A JSON object that a store can keep."""
Storable = Annotated[Any, AfterValidator(_storable)]
"""The same for any JSON value."""
OfSession = Annotated[str | None, Field(max_length=128, description="Only those of one session.")]
OfPrincipal = Annotated[str | None, Field(max_length=255, description="Only those of one principal.")]


# --- lists

Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE, description="How many at most.")]
Most = Annotated[int, Field(ge=1, le=MOST_AT_HAND, description="How many at most.")]
"""For lists that are short and at hand: all of them, unless somebody wants fewer."""
Offset = Annotated[int, Field(ge=0, le=2**31 - 1, description="How many to leave out at the beginning.")]
After = Annotated[
    str | None, Field(max_length=300, description="Only those after this one: 'next_after' of the page before.")
]


class Page(BaseModel):
    """Which part of a list this is."""

    page: int = Field(ge=1, examples=[1])
    page_size: int = Field(ge=1, examples=[PAGE_SIZE])
    total: int = Field(description="How many there are without the limit.")
    next_after: str | None = Field(description="Give it as 'after' to get those after these; null at the end.")


@dataclass(frozen=True, slots=True)
class Paging:
    """Which part of a list is wanted. An operation that takes one takes its fields."""

    limit: int = PAGE_SIZE
    after: Any = None
    offset: int = 0

    async def read(
        self,
        read: Callable[..., Awaitable[Sequence[T]]],
        count: Callable[..., Awaitable[int]],
        asked: Mapping[str, Any],
        *,
        key: str = "id",
    ) -> tuple[list[T], dict[str, Any]]:
        """This part of a list, and the fields of its Page. Read and counted by the same filters."""
        offset = {"offset": self.offset} if self.offset else {}
        rows = await read(**asked, after=self.after, **offset, limit=self.limit + 1)
        return list(rows[: self.limit]), page_of(rows, await count(**asked), self.limit, self.offset, key=key)

    def of(self, items: Sequence[T], *, key: Callable[[T], str]) -> tuple[list[T], dict[str, Any]]:
        """This part of a list that is at hand, and the fields of its Page."""
        first = 0
        if self.after:
            first = next((number for number, item in enumerate(items, 1) if key(item) == self.after), len(items))
        rows, left = list(items[first : first + self.limit]), len(items) - first - self.limit
        page = {"page": first // self.limit + 1, "page_size": self.limit, "total": len(items)}
        return rows, {**page, "next_after": key(rows[-1]) if left > 0 else None}


PAGE, ALL = Paging(), Paging(MOST_AT_HAND)
Paged = Annotated[Paging, Input.of("limit", Limit, PAGE_SIZE), Input.of("offset", Offset, 0)]
Following = Annotated[Paging, Input.of("limit", Limit, PAGE_SIZE)]
AtHand = Annotated[Paging, Input.of("limit", Most, MOST_AT_HAND)]


def page_of(rows: Sequence[Any], total: int, limit: int, offset: int = 0, *, key: str = "id") -> dict[str, Any]:
    """The fields of a Page of the first ``limit`` rows. Whether there are more shows in that one more was read."""
    return {
        "page": offset // limit + 1,
        "page_size": limit,
        "total": total,
        "next_after": str(getattr(rows[limit - 1], key)) if len(rows) > limit else None,
    }


# --- JSON in texts


def refused(place: str, message: str) -> InvalidInputError:
    """An input that is refused for one field."""
    return InvalidInputError("VALIDATION_ERROR", place, message)


def read_object(text: str, place: str) -> dict[str, Any]:
    """The JSON object that a text holds. Raises InvalidInputError."""
    value = read_json(text.encode("utf-8", "surrogatepass"), place=place, once=True)
    if not isinstance(value, dict):
        raise refused(place, 'it is no JSON object, such as {"topic": "health"}')
    try:
        storable_json(value)
    except ValueError as error:
        raise refused(place, str(error)) from None
    return value


def read_json(data: bytes, *, place: str = "body", once: bool = False) -> Any:
    """The value of JSON text. Raises InvalidInputError that names the place of what could not be stored.

    With ``once`` no object may name a field twice: one of the two would be dropped unseen.
    """
    try:
        check_arguments(data)
        value = json.loads(data, object_pairs_hook=_each_once if once else None)
    except OverBudgetError as error:
        raise refused(place, f"it {error}") from None
    except RecursionError:
        raise refused(place, "it is nested too deeply") from None
    except ValueError as error:
        raise refused(place, f"it is not JSON that can be read: {error}") from None
    if isinstance(value, dict) and len(value) > MOST_FIELDS:  # each unknown one would be an error of its own
        raise refused(place, f"it has more than {MOST_FIELDS:,} fields")
    try:
        # Quick, and refuses just what must be refused. Only then is it looked for.
        canonical_json(value).encode()
    except RecursionError:
        raise refused(place, "it is nested too deeply") from None
    except ValueError:
        raise refused(*_unencodable(value)) from None
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is named twice")
    return fields


def _unencodable(value: Any) -> tuple[str, str]:
    """Where the first text or number is that JSON cannot express, and what is wrong with it."""
    left = [("", value)]
    while left:
        place, item = left.pop()
        held: list[tuple[str, Any]] = []
        if isinstance(item, dict):
            for key, inner in item.items():
                held += [(place, key), (f"{place}.{key}", inner)]
        elif isinstance(item, list):
            held = [(f"{place}.{number}", inner) for number, inner in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            return place, f"{item} is no number that JSON has"
        elif isinstance(item, str) and any("\ud800" <= character <= "\udfff" for character in item):
            return place, "half of a surrogate pair is no text"
        left += reversed(held)
    return "", "it holds something that JSON cannot say"
