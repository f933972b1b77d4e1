"""What a person wants, as data: intents and their types."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from journeyman.core.data import Entity, reads_stored
from journeyman.core.errors import ConfigurationError

INTENT_TYPES = ("summarize", "analyze", "fetch", "explain")
"""The intents every installation knows; configuration or ``add_intent_type`` adds an installation's own."""


class IntentType(Entity):
    """A kind of thing that people want."""

    name: str
    description: str = ""
    """In a sentence, what such requests ask for."""
    examples: tuple[str, ...] = ()
    """Requests of this type, as people write them."""
    tools: tuple[str, ...] = ()
    """The tools that serve it; where none are named here and no categories, any tool may."""
    categories: tuple[str, ...] = ()
    """The categories whose tools serve it."""

    @field_validator("name")
    @classmethod
    def _one_word(cls, value: str) -> str:
        if (why := wrong_type_name(value)) is not None:
            raise ValueError(why)
        return value


def wrong_type_name(name: str) -> str | None:
    """Why a type of intent cannot have this name; None where it can."""
    if name == "none":
        return "intent type 'none': that is what a request of no type is called; use another name"
    if re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        return None
    return f"intent type {name!r}: use a small letter, then small letters, digits or underscores, at most 64"


_BASE = {
    "summarize": IntentType.unchecked(
        name="summarize",
        description="Say in a few words what a longer text or conversation comes to.",
        examples=(
            "Summarize this report in three sentences",
            "Give me the gist of the discussion",
            "What did I miss while I was away?",
            "Recap the meeting",
        ),
    ),
    "analyze": IntentType.unchecked(
        name="analyze",
        description="Find patterns, causes or differences in data.",
        examples=(
            "Analyze last quarter's sales",
            "Which product is growing fastest?",
            "Compare the two versions",
            "What is behind the rise in complaints?",
        ),
    ),
    "fetch": IntentType.unchecked(
        name="fetch",
        description="Look up, list or search for something that is there.",
        examples=(
            "Show me my open orders",
            "Find the latest invoice",
            "Who is responsible for this?",
            "Is the server running?",
        ),
    ),
    "explain": IntentType.unchecked(
        name="explain",
        description="Say what something means, how it works or why it happened.",
        examples=(
            "Explain how the cache works",
            "What does this abbreviation mean?",
            "Why did the import fail?",
            "How do I read this chart?",
        ),
    ),
}
_added: dict[str, list[IntentType]] = {}
"""The last one added under a name holds; it is a list because two apps in a process may add the same."""


def add_intent_type(
    name: str | IntentType,
    *,
    description: str = "",
    examples: tuple[str, ...] = (),
    tools: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
) -> IntentType:
    """Let intents be of this type, too: a word in small letters, digits and underscores, or the whole type.

    It holds for this process, and for every reader in it. A type that every installation knows can be described anew.
    """
    if isinstance(name, str):
        if (why := wrong_type_name(name)) is not None:
            raise ConfigurationError(why)
        name = IntentType(name=name, description=description, examples=examples, tools=tools, categories=categories)
    _added.setdefault(name.name, []).append(name)
    return name


def remove_intent_type(kind: IntentType) -> None:
    """Take back what ``add_intent_type`` has returned; one that is gone already is no error."""
    kept = [other for other in _added.get(kind.name, ()) if other is not kind]
    if kept:
        _added[kind.name] = kept
    else:
        _added.pop(kind.name, None)


def intent_types() -> dict[str, IntentType]:
    """The types that are known now, by name; those that every installation knows first."""
    return {**_BASE, **{name: _described(name, kinds[-1]) for name, kinds in sorted(_added.items())}}


def _described(name: str, kind: IntentType) -> IntentType:
    """What an installation says of a known type is laid over what is known of it."""
    base = _BASE.get(name)
    if base is None:
        return kind
    said = {key: value for key, value in kind.model_dump().items() if value}
    return base.model_copy(update=said)


class UserIntent(Entity):
    """What a request asks for."""

    intent_type: str = Field(min_length=1)
    confidence: float = Field(ge=0, le=1)
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Values in the request for the first suggested tool; each conforms to the tool's schema."""
    context_requirements: tuple[str, ...] = ()
    """What that tool needs and the request does not say."""
    suggested_tools: tuple[str, ...] = ()
    """Registered tools that serve it, best first."""
    fallback_options: tuple[str, ...] = ()
    """Registered tools to try where those do not do, best first."""

    @field_validator("intent_type")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        known = intent_types()
        if value not in known and not reads_stored(info):
            raise ValueError(f"intent_type: must be one of {', '.join(known)} (add_intent_type() adds others)")
        return value
