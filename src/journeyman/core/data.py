"""The base class of all entities, how stored ones are read, identifiers, canonical JSON, text as people see it,
and how much is read of what others send.

Nothing here knows what an agent is.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import AsyncIterable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar
from unicodedata import category

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    computed_field,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, from_json, to_json

from journeyman.core.words import packaged_json

K = TypeVar("K")
V = TypeVar("V")

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_make = getattr(json.encoder, "c_make_encoder", None)
# ``encode`` would make this for every value, which costs more than using it. Nothing is remembered between values, not
# even within one: what contains itself is nested too deeply.
_objects = _make and _make(None, _encode.default, json.encoder.encode_basestring, None, ":", ",", True, False, False)
"""One encoder for all: ``json.dumps`` would make one for every call."""


LOG_FIELDS = "journeyman"
"""The attribute of a log record that holds its fields."""


MOST_NESTED = 100
"""How deep a value may be nested. JSON readers stop at 200 levels, and a journal adds some of its own."""


MOST_DIGITS = 4_300
"""Of a whole number. Neither Python nor the JSON reader reads a longer one."""
TOO_LONG_NUMBER = f"a number of more than {MOST_DIGITS:,} digits"


FORMAT = 4
"""The version of what is stored as JSON: facts, agents, orders, approvals, tasks. Written into every one of them.

A reader skips fields it does not know, so adding one needs no new version. A new type of fact does: it says in
``since`` from which version on it is written, and is left out while an older program works on the same store.
"""


_EPOCH = datetime.fromtimestamp(0, UTC)


def iso_time(seconds: float) -> str:
    """A time in seconds since 1970 as ISO 8601, in UTC. Never a later one: what is asked for since then is in it."""
    moment = _EPOCH + timedelta(microseconds=math.floor(seconds * 1e6))
    if moment.timestamp() > seconds:  # the product was rounded up
        moment -= timedelta(microseconds=1)
    return moment.isoformat().replace("+00:00", "Z")


def _seconds(value: Any) -> Any:
    """A time that was written as ISO 8601, in seconds since 1970."""
    if isinstance(value, str) and "-" in value[1:]:  # else it may be a number
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return value
    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
    return value


def not_blank(message: str) -> AfterValidator:
    """Refuses a text that says nothing, in these words."""

    def check(value: str) -> str:
        if not value.strip():
            raise ValueError(message)
        return value

    return AfterValidator(check)


_TIME_SCHEMA = {"type": "string", "format": "date-time", "examples": ["2026-01-05T09:00:00Z"]}
Moment = Annotated[
    float,
    BeforeValidator(_seconds),
    PlainSerializer(iso_time, return_type=str, when_used="json"),
    WithJsonSchema(_TIME_SCHEMA, mode="serialization"),
    WithJsonSchema({"anyOf": [_TIME_SCHEMA, {"type": "number"}]}, mode="validation"),
]
"""A time: seconds since 1970 here, ISO 8601 in JSON."""


class Entity(BaseModel):
    """Frozen data. Unknown fields are refused, so that a typo is an error and not a silent default."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    if not TYPE_CHECKING:  # type checkers derive the arguments from the fields

        def __init__(self, /, **values: Any) -> None:
            try:
                self.__pydantic_validator__.validate_python(values, self_instance=self)
            except ValidationError as error:
                from journeyman.core.errors import InvalidDataError, validation_problems  # errors are entities, too

                raise InvalidDataError(type(self).__name__, validation_problems(error)) from None

        # Tells pydantic that validation need not call this: entities inside others are built without it.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def stored(cls, data: str | bytes | dict[str, Any]) -> Self:
        """An entity from its stored form. Fields that a newer version has added are skipped."""
        if isinstance(data, dict):
            return cls.model_validate(data, extra="ignore", context=STORED)
        return cls.model_validate_json(data, extra="ignore", context=STORED)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema, with an example where there is one."""
        made = handler(schema)
        # One example of each entity that people write or read.
        if (sample := packaged_json("journeyman.core", "samples.json").get(cls.__name__)) is not None:
            handler.resolve_ref_schema(made)["examples"] = [sample]
        return made


STORED = "stored"


def reads_stored(info: ValidationInfo) -> bool:
    """Whether a validator looks at what an earlier version has stored, which must load under newer rules."""
    return info.context is STORED


# Once for all, since looking up a class's slots by name is most of what setting them costs.
_new = object.__new__
_set_fields = vars(BaseModel)["__dict__"].__set__
_set_names, _set_extra, _set_private = (
    vars(BaseModel)[f"__pydantic_{slot}__"].__set__ for slot in ("fields_set", "extra", "private")
)
_BLANKS: dict[type[BaseModel], tuple[dict[str, Any], set[str]]] = {}
E = TypeVar("E", bound=Entity)


def unchecked(kind: type[E], values: dict[str, Any]) -> E:
    """An entity of values that our own code has just computed: nothing is validated, every field counts as set.

    A step of a run creates a dozen entities, and most live as long as the run. Validating them again, and a set
    of field names in each, would be a fifth of the cost of a step. The tests validate all that is created here.
    It is no method, since looking up a name in a model's class costs a sixth of all this, and takes no keywords: Python
    makes a dict of many of those at twice the cost. All the fields, if they are given, are given in their order.
    """
    try:
        blank, names = _BLANKS[kind]
    except KeyError:
        blank, names = _blank(kind)
    entity = _new(kind)
    _set_fields(entity, values if len(values) == len(blank) else blank | values)
    _set_names(entity, names)
    _set_extra(entity, None)
    _set_private(entity, None)
    return entity


def _blank(kind: type[BaseModel]) -> tuple[dict[str, Any], set[str]]:
    """An entity's fields in their order, with the defaults of those that need not be given, and their names."""
    fields = kind.model_fields
    # What a factory makes cannot be shared: such fields must be given, like those without a default.
    blank = {
        name: None if field.is_required() or field.default_factory else field.default for name, field in fields.items()
    }
    return _BLANKS.setdefault(kind, (blank, set(fields)))


def new_id(prefix: str) -> str:
    """A unique identifier that sorts by creation time, e.g. ``run_0192f3c2a1b4d6e8f0a1b2c3``."""
    return f"{prefix}_{int(time.time() * 1000):012x}{os.urandom(6).hex()}"


def canonical_json(value: Any) -> str:
    """The one text of a JSON value: sorted keys, no spaces, NaN and infinity refused.

    Raises ValueError for what JSON cannot say and RecursionError for what is nested too deeply.
    """
    return "".join(_objects(value, 0)) if _objects and type(value) is dict else _encode.encode(value)


_OBEYED = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def safe_json(text: str) -> str:
    """JSON text that says the same, without the characters that JSON allows and a terminal would obey."""
    return text if text.isascii() and "\x7f" not in text else _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def storable_json(value: Any) -> bytes:
    """The JSON text of a value that a journal shall keep. Raises ValueError where it could not be read back."""
    data = to_json(value)
    # Few brackets cannot be nested deeply, and counting them is quick.
    if data.count(b"[") + data.count(b"{") > MOST_NESTED and nested_too_deeply(value):
        raise ValueError(f"nested more than {MOST_NESTED} levels deep")
    if len(data) > MOST_DIGITS and _many_digits(data):
        try:
            from_json(data)  # they may belong to a text
        except ValueError:
            raise ValueError(TOO_LONG_NUMBER) from None
    return data


def _many_digits(data: bytes) -> bool:
    """Whether more than ``MOST_DIGITS`` digits may follow each other: so many would fill one of these windows."""
    window = MOST_DIGITS // 2
    return any(data[at : at + window].isdigit() for at in range(0, len(data) - window, window))


def nested_too_deeply(value: Any) -> bool:
    level = [value]
    for _ in range(MOST_NESTED):
        held = (item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer))
        level = [item for item in held if isinstance(item, dict | list)]
        if not level:
            return False
    return True


def with_texts(value: Any, change: Callable[[str], Any], *, names: bool = False) -> Any:
    """A JSON value with what ``change`` makes of each text in it; of names of fields only where these are meant too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [with_texts(item, change, names=names) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        change(key) if names and isinstance(key, str) else key: with_texts(item, change, names=names)
        for key, item in value.items()
    }


DIGITS_OF_INFINITY = 309
_unbounded = re.compile(r"\d[eE]|NaN|Infinity").search


def may_overflow(text: str) -> bool:
    """Whether JSON text may hold a number that no float can: only by an exponent, by many digits, or by its name."""
    return len(text) >= DIGITS_OF_INFINITY or _unbounded(text) is not None


def digest(*parts: str) -> str:
    """A short, stable fingerprint of some texts (SHA-256; parts cannot run into each other)."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()[:32]


def moment(seconds: float) -> datetime:
    """A clock's seconds as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


# --- text as a person must see it before they agree to it: nothing hidden, nothing rearranged, numbers exact

# Characters that count as printable and show nothing: fillers, blanks, joiners and variation selectors.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_LINES = frozenset("\n\t")


def visible(text: str) -> str:
    """The text with control, bidirectional, zero-width and blank characters written as JSON writes them: ``\\u202e``.

    Lines and tabs stay, and so does everything that can be seen.
    """
    if text.isprintable() and not _BLANK.search(text):
        return text
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character in _LINES or (character.isprintable() and not _BLANK.match(character)):
        return character
    return json.dumps(character)[1:-1] if character > "\x7f" else f"\\u{ord(character):04x}"


def exact_json(value: Any) -> str:
    """The JSON text of a value in which every character can be seen, and which reads back as exactly this value.

    A program whose numbers are floats, such as a page in a browser, shows and sends the text, and loses no digit.
    """
    return visible(canonical_json(value))


def one_line(text: str, *, most: int) -> str:
    """Foreign text as one short line."""
    line = visible(" ".join(text[: most * 4].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


ANSWER_BYTES = 8_000_000
"""Of one answer of a model: the body after decompression or, of a stream, its texts and arguments together."""
STREAM_BYTES = 64_000_000
"""Of one streamed answer after decompression, with all that a server writes around each word of it."""
STREAM_EVENTS = 500_000
"""Pieces of one streamed answer."""
EVENT_BYTES = 2_000_000
"""Of one event of a streamed answer that a provider's own SDK reads."""
EVENT_LINES = 2_000
"""Of such an event."""
TURN_CALLS = 128
"""Calls that a model may ask for in one turn."""
TOOL_NAME_CHARS = 128
"""Of a tool's name; a longer one that a model writes names no tool."""
ERROR_BYTES = 16_000
"""Of what a server says where it refuses; no more is read."""
VECTORS_BYTES = 32_000_000
"""Of one answer of a server that makes vectors."""
JSON_CONTAINERS = 100_000
"""Lists and objects in one JSON text; each costs far more than its two characters."""
ARGUMENT_CONTAINERS = 10_000
"""Lists and objects in the arguments of a call, or in a request over HTTP: each is looked at on the event loop."""
ARGUMENT_VALUES = 20_000
"""Values in them."""
LISTED_PROBLEMS = 1_000
"""Wrong values up to which each is looked at; of more only the number is told."""
BACKTRACKING_CHARS = 8_000
"""Of arguments where a schema from outside has a pattern that only a backtracking engine can match."""
OUTPUT_SCHEMA_BYTES = 100_000
"""Of the JSON Schema of an agent's answers."""
OUTPUT_SCHEMA_PARTS = 2_000
"""Schemas in it, with a copy of its target in the place of each reference: a few lines can stand for millions."""
GRAM_CHARS = 1_000_000
"""Of one gram document."""
SEARCHED_CHARS = 20_000
"""Of a text that is looked for or is to be found: its beginning counts, the rest does not."""
LARGE_TEXT = 20_000
"""Characters from which on a text is worked on in a thread, so that the event loop goes on meanwhile."""
SLICE_BYTES = 32_000
"""Of a stream that is worked on before others get a turn."""

MCP_MESSAGE_BYTES = 4_000_000
"""Of one message of an MCP server, before it is parsed."""
MCP_CONTAINERS = 20_000
"""Lists and objects in one message of an MCP server."""
MCP_VALUES = 100_000
"""Values in one message of an MCP server: checking them against the protocol takes the event loop's time."""
MCP_ITEMS = 1_000
"""Entries of one list in a message of an MCP server: tools on a page, pieces of a result."""
MCP_TOOLS = 2_000
"""Tools of one MCP server, on all pages together."""
MCP_PAGES = 100
"""Pages of one list of an MCP server."""
MCP_SCHEMA_BYTES = 100_000
"""Of the schemas of one tool of an MCP server."""
MCP_DESCRIPTION_CHARS = 8_000
"""Of the description of a tool of an MCP server; the rest is cut off."""
MCP_UNASKED = 200
"""Notifications and requests that an MCP server may send in a second; more are dropped."""
MCP_STRAY_BYTES = 1_000_000
"""That an MCP server may write to its standard output beside the protocol."""
MCP_STDERR_BYTES = 2_000
"""Of the end of an MCP server's standard error, kept to explain why it failed."""


class Latest(dict[K, V]):
    """Keeps so many of what was put in, the latest last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]


class OverBudgetError(ValueError):
    """More came from outside than is taken. The message names the limit."""


def check_containers(text: str | bytes) -> None:
    """Refuse JSON text that takes long to read although it is short. Raises OverBudgetError."""
    if len(text) <= JSON_CONTAINERS:
        return
    opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if opened > JSON_CONTAINERS:
        raise OverBudgetError(f"has more than {JSON_CONTAINERS:,} lists and objects")


def check_arguments(text: str | bytes) -> None:
    """The same for the JSON text of a call's arguments, or of a request. Raises OverBudgetError."""
    if len(text) > ARGUMENT_CONTAINERS:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if (over := too_many(data, containers=ARGUMENT_CONTAINERS, values=ARGUMENT_VALUES)) is not None:
            raise OverBudgetError(f"has more than {over}")


_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


def too_many(text: bytes, *, containers: int, values: int) -> str | None:
    """What a JSON text has too many of; brackets and commas inside of texts do not count."""
    counts = _counted(text)
    if counts[0] > containers or counts[1] > values:
        counts = _counted(_TEXT.sub(b"", text))
    if counts[0] > containers:
        return f"{containers:,} lists and objects"
    return f"{values:,} values" if counts[1] > values else None


def _counted(text: bytes) -> tuple[int, int]:
    containers = text.count(b"[") + text.count(b"{")
    return containers, containers + text.count(b",")


async def read_at_most(pieces: AsyncIterable[bytes], most: int) -> tuple[bytes, bool]:
    """The first ``most`` bytes of a body, and whether that is all of it. The rest is not read."""
    kept: list[bytes] = []
    left = most
    async for piece in pieces:
        kept.append(piece[:left])
        left -= len(piece)
        if left < 0:
            return b"".join(kept), False
    return b"".join(kept), True


LONGEST_NAME = 80
_NOT_IN_NAMES = frozenset('<>&@|:*`~[]"')
_NOT_FOR_PEOPLE = frozenset({"channel", "here", "everyone", "group"})


def name_of(person: Mapping[str, Any]) -> str:
    """What a person of Slack calls themselves, without what a text could take for something else; may be empty."""
    profile = person.get("profile") or {}
    for name in (profile.get("display_name"), profile.get("real_name"), person.get("real_name"), person.get("name")):
        letters = (
            " " if letter in _NOT_IN_NAMES or category(letter)[0] == "C" else letter for letter in str(name or "")
        )
        shown = " ".join("".join(letters).split())[:LONGEST_NAME].strip()
        if shown and shown.casefold() not in _NOT_FOR_PEOPLE:
            return shown
    return ""


LONGEST_PAUSE_TEXT = 100
"""Characters of a Retry-After header: every date fits."""


def retry_after(value: str | None, *, now: float) -> float | None:
    """The seconds a Retry-After header asks for: a number, or a date."""
    if not value or len(value) > LONGEST_PAUSE_TEXT:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime

        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


if TYPE_CHECKING:
    derived = property
else:

    def derived(function: Callable[[Any], Any]) -> Any:
        """A property of an entity that its JSON shows as well."""
        return computed_field(property(function))


class Derived(Entity):
    """An entity whose JSON also shows values derived from its fields; reading it back leaves those out."""

    @model_validator(mode="before")
    @classmethod
    def _under_our_names(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(data, dict) or reads_stored(info):  # what is stored has our names, and more is ignored
            return data
        from journeyman.core.aliases import READERS  # only what others have written is read so

        read = READERS.get(cls.__name__.partition("[")[0], dict)
        return {name: value for name, value in read(data).items() if name not in cls.model_computed_fields}
