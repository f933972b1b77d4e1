"""The base class of all entities, how stored ones are read, identifiers and canonical JSON.

Nothing here knows what an agent is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, from_json, to_json

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
"""One encoder for all: ``json.dumps`` would make one for every call."""


LOG_FIELDS = "journeyman"
"""The attribute of a log record that holds its fields."""


MOST_NESTED = 100
"""How deep a value may be nested. JSON readers stop at 200 levels, and a journal adds some of its own."""


MOST_DIGITS = 4_300
"""Of a whole number. Neither Python nor the JSON reader reads a longer one."""
TOO_LONG_NUMBER = f"a number of more than {MOST_DIGITS:,} digits"


FORMAT = 3
"""The version of what is stored as JSON: facts, agents, orders, approvals, tasks. Written into every one of them.

A reader skips fields it does not know, so adding one needs no new version. A new type of fact does: it says in
``since`` from which version on it is written, and is left out while an older program works on the same store.
"""


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
            return cls.model_validate(data, extra="ignore", context=_STORED)
        return cls.model_validate_json(data, extra="ignore", context=_STORED)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema, with an example where there is one."""
        from journeyman.core.samples import SAMPLES  # only whoever asks for a schema pays for them

        made = handler(schema)
        if (sample := SAMPLES.get(cls.__name__)) is not None:
            handler.resolve_ref_schema(made)["examples"] = [sample]
        return made

    @classmethod
    def unchecked(cls, **values: Any) -> Self:
        """An entity of values that our own code has just computed: nothing is validated, every field counts as set.

        A step of a run creates a dozen entities, and most live as long as the run. Validating them again, and a set
        of field names in each, would be a fifth of the cost of a step. The tests validate all that is created here.
        """
        blank, names = _BLANKS.get(cls) or _blank(cls)
        entity = _new(cls)
        fields = entity.__dict__
        fields.update(blank)
        fields.update(values)
        _set_names(entity, names)
        _set_extra(entity, None)
        _set_private(entity, None)
        return entity


_STORED = "stored"


def reads_stored(info: ValidationInfo) -> bool:
    """Whether a validator looks at what an earlier version has stored, which must load under newer rules."""
    return info.context is _STORED


# Once for all, since looking up a class's slots by name is most of what setting them costs.
_new = object.__new__
_set_names, _set_extra, _set_private = (
    vars(BaseModel)[f"__pydantic_{slot}__"].__set__ for slot in ("fields_set", "extra", "private")
)
_BLANKS: dict[type[BaseModel], tuple[dict[str, Any], set[str]]] = {}


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
    return _encode(value)


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


def digest(*parts: str) -> str:
    """A short, stable fingerprint of some texts (SHA-256; parts cannot run into each other)."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()[:32]


class Derived(Entity):
    """An entity whose JSON also shows values derived from its fields; reading it back ignores those."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
