"""What a tool is, as data that can be printed, compared, stored and sent to a model. No callable in sight."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PositiveInt, ValidationError, field_validator, model_validator

from journeyman.core.data import Entity, digest, not_blank
from journeyman.core.errors import ToolDefinitionError, shortened_json, validation_problems
from journeyman.core.policy import Permissions, Reads, RiskLevel, Sends

FINISH = "finish"
FIND_TOOLS = "find_tools"
RESOURCE, PROMPT = "resource", "prompt"
"""Keys in the metadata of tools that a program publishes as such: MCP clients read these, and do not call them."""
RESERVED_NAMES = frozenset({FINISH, "read_result", FIND_TOOLS})
"""Tools the loop itself offers."""

DEFAULT_TIMEOUT = 30.0

_EXAMPLES_TOLD = 3
"""How many of a tool's examples a model is told: each costs tokens at every step."""


Environment = Literal["development", "staging", "production"]
"""Where an installation runs; settings can differ between them."""


LONGEST_NAME_FOR_MODELS = 64
_SAFE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def name_for_models(name: str) -> str:
    """The nearest name that every provider accepts; a long one is cut and told apart by a digest of the whole."""
    if _SAFE_NAME.fullmatch(name):
        return name
    safe = re.sub(r"[^a-zA-Z0-9_-]", "_", name) or "unnamed"
    return safe if len(safe) <= LONGEST_NAME_FOR_MODELS else f"{safe[:55]}_{digest(name)[:8]}"


def no_parameters() -> dict[str, Any]:
    """The schema of a tool without parameters."""
    return {"type": "object", "properties": {}, "additionalProperties": False}


@cache
def _signatures() -> Any:
    """Who turns signatures into schemas: `gram`, which imports this room, so it is named and not imported here."""
    return import_module("journeyman.gram.signature")


class ToolSpecification(Entity):
    """A serialisable description of a tool.

    Give either ``parameters`` (JSON Schema) or ``signature`` (gram, or the older text form); the other is made from
    it. Given both, they must agree.
    """

    name: str = Field(min_length=1, max_length=128)
    description: Annotated[
        str, Field(min_length=1), not_blank("a tool needs a description: it is how a model decides when to use it")
    ]
    signature: str = ""
    parameters: dict[str, Any] = Field(default_factory=no_parameters)
    returns: dict[str, Any] | None = None
    category: str = "general"
    enabled: bool = True
    risk: RiskLevel | None = None
    """None means undeclared: known names, then the policy's default, decide."""
    read_only: bool = False
    idempotent: bool = False
    timeout_seconds: float = Field(default=DEFAULT_TIMEOUT, ge=1, le=300)
    permissions: Permissions = frozenset()
    reads: Reads | None = None
    """What its results hold: ``untrusted`` (others write it), ``private`` (for the principal alone), ``private:NAME``
    (and for NAME); () for neither. None means undeclared: where it comes from and its name decide."""
    sends: Sends | None = None
    """Where its arguments go: the name of each parameter that names a recipient, or ``to:NAME`` for a fixed one; () for
    nowhere. None means undeclared: what has effects may send all of it."""
    secrets: tuple[str, ...] = ()
    """The names of the secrets it is given; their values are looked up when it is called, and are nowhere in here."""
    tags: tuple[str, ...] = ()
    examples: tuple[Any, ...] = ()
    """Arguments of a call as an object, or the words in which people ask for it as text."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    version: str = "1"
    deprecated: bool | str = False
    """True, or a sentence that says what to use instead."""

    @field_validator("name")
    @classmethod
    def _printable(cls, value: str) -> str:
        if not re.fullmatch(r"[^\s\x00-\x1f]+", value):
            raise ValueError("a tool's name has no spaces or control characters")
        return value

    @model_validator(mode="before")
    @classmethod
    def _schema_from_signature(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        schema = data.get("parameters")
        if not data.keys() <= cls.model_fields.keys() or (isinstance(schema, dict) and schema.get("required") is True):
            from journeyman.core.aliases import specification_fields  # in others' names

            data = specification_fields(data)
        return _signatures().completed(data)

    @field_validator("parameters", "returns", mode="after")
    @classmethod
    def _whole(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if (reference := _signatures().outside_reference(value)) is not None:
            raise ValueError(
                f"the reference {reference!r} leads out of the schema, and nothing is fetched; "
                "put what it means under '$defs' and write '#/$defs/NAME'"
            )
        return value

    @field_validator("secrets", mode="after")
    @classmethod
    def _names_of_secrets(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"a secret's name is that of an environment variable, got {name!r}")
        return tuple(sorted(set(value)))

    @model_validator(mode="after")
    def _consistent(self) -> ToolSpecification:
        if self.read_only and self.risk is not None and self.risk is not RiskLevel.REVERSIBLE:
            raise ValueError(f"risk: a read-only tool is reversible, this one says {self.risk.value!r}")
        for name in self.sends or ():
            who = name.removeprefix("to:") or "NAME"
            if name != f"to:{who}" and name not in self.parameters.get("properties", {}):
                raise ValueError(f"sends: {name!r} is no parameter; write 'to:{who}' for a fixed recipient")
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _refused_in_plain_words(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Wherever a specification is made, inside an agent too, it is refused with a ToolDefinitionError."""
        try:
            return handler(data)
        except ValidationError as error:
            name = data.get("name") if isinstance(data, dict) else None
            unknown = f"unknown field (known: {', '.join(cls.model_fields)})"
            where = f"tool {name!r}" if isinstance(name, str) and name else "a tool without a name"
            raise ToolDefinitionError.of_fields(where, validation_problems(error, unknown=unknown)) from error

    @property
    def name_for_models(self) -> str:
        """The name under which a model knows it: as providers take it, and the same whatever else is offered."""
        return name_for_models(self.name)

    @property
    def function_signature(self) -> str:
        return self.signature

    @property
    def return_type(self) -> str | None:
        """The JSON type of what comes back, or None where nothing was declared."""
        if self.returns is None:
            return None
        kind = self.returns.get("type", "any")
        return kind if isinstance(kind, str) else "any"

    @property
    def description_for_models(self) -> str:
        """The description, with what else helps a model to choose: examples, and what to use instead."""
        if not self.examples and not self.deprecated:
            return self.description
        parts = [self.description]
        if self.deprecated:
            parts.append(f"Deprecated: {self.deprecated if isinstance(self.deprecated, str) else 'do not use'}")
        if self.requests:
            parts.append("Asked for like this: " + "; ".join(map(shortened_json, self.requests[:_EXAMPLES_TOLD])))
        if arguments := [example for example in self.examples if not isinstance(example, str)]:
            parts.append("Examples: " + "; ".join(map(shortened_json, arguments[:_EXAMPLES_TOLD])))
        return "\n\n".join(parts)

    @property
    def requests(self) -> tuple[str, ...]:
        """In which words people ask for it: those of its examples that are text."""
        return tuple(example for example in self.examples if isinstance(example, str))

    @property
    def repeat_safe(self) -> bool:
        """Whether running it twice does no more than running it once."""
        return self.read_only or self.idempotent


class ToolConfiguration(Entity, defer_build=True):
    """An operator's settings for one tool."""

    tool_name: str = Field(min_length=1)
    enabled: bool = True
    parameters: dict[str, Any] = Field(default_factory=dict)
    environment_overrides: dict[Environment, dict[str, Any]] = Field(default_factory=dict)
    rate_limits: dict[str, PositiveInt] = Field(default_factory=dict)
    """Calls per unit of time: ``{"per_minute": 30}``; units are second, minute, hour, day."""
    timeout_seconds: float = Field(default=DEFAULT_TIMEOUT, ge=1, le=300)

    @field_validator("rate_limits")
    @classmethod
    def _known_units(cls, value: dict[str, int]) -> dict[str, int]:
        for unit in value:
            if unit not in ("per_second", "per_minute", "per_hour", "per_day"):
                raise ValueError(f"rate limit {unit!r} is unknown; use per_second, per_minute, per_hour or per_day")
        return value


class ToolCategory(Entity, defer_build=True):
    """Tools that are switched on, permitted and configured together."""

    name: str = Field(min_length=1)
    enabled: bool = True
    permissions: Permissions = frozenset()
    global_config: dict[str, Any] = Field(default_factory=dict)
    tools: dict[str, ToolConfiguration] = Field(default_factory=dict)
    """By name, which a tool's configuration need not repeat."""

    @field_validator("tools", mode="wrap")
    @classmethod
    def _by_name(cls, value: Any, read: Callable[[Any], dict[str, ToolConfiguration]]) -> dict[str, ToolConfiguration]:
        given = value.items() if isinstance(value, dict) else ()
        named = {name: {"tool_name": name, **said} if isinstance(said, dict) else said for name, said in given}
        found = read(named or value)
        if other := [said.tool_name for name, said in found.items() if said.tool_name != name]:
            raise ValueError(f"{other[0]!r} is configured under another name")
        return found
