"""What a person wants (intents), and what cannot be done for them (gaps), as data."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Annotated, Any, TypeAlias

from pydantic import Field, ValidationInfo, field_validator

from journeyman.core.data import Entity, Moment, digest, not_blank, reads_stored
from journeyman.core.errors import ConfigurationError
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import WordLists, packaged_json, stem, words


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


_added: dict[str, list[IntentType]] = {}
"""The last one added under a name holds; it is a list because two apps in a process may add the same."""


@cache
def _base() -> dict[str, IntentType]:
    read = packaged_json("journeyman.core", "intents.json")
    return {name: IntentType(name=name, **said) for name, said in read.items()}


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
    return {**_base(), **{name: _described(name, kinds[-1]) for name, kinds in sorted(_added.items())}}


def _described(name: str, kind: IntentType) -> IntentType:
    """What an installation says of a known type is laid over what is known of it."""
    base = _base().get(name)
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


NEAREST = 5
"""How many of the tools that were looked at a person is told."""
KEY_CHARS = 12
_listed = WordLists("journeyman.core", "gaps.txt")


class ToolGapReport(Entity):
    """A task that the tools at hand cannot do. No missing tool, no report."""

    missing_tools: tuple[str, ...] = Field(min_length=1)
    attempted_task: Annotated[
        str, Field(min_length=1), not_blank("attempted_task: must say which task could not be done")
    ]
    existing_tools_checked: tuple[str, ...] = ()
    by_meaning_alone: bool = False
    """Whether the task is in a language that is not known here, so that an embedder alone has decided."""

    @property
    def plain(self) -> str:
        """The report in a sentence or two."""
        missing = "; ".join(self.missing_tools)
        nearest = ", ".join(self.existing_tools_checked[:NEAREST])
        text = f"No tool can do this: {missing}." + (f" Nearest: {nearest}." if nearest else " There are no tools.")
        return text + (" The language is not known here: told by meaning alone." if self.by_meaning_alone else "")


FindGap: TypeAlias = Callable[[str, Sequence[ToolSpecification], float | None], Awaitable[ToolGapReport | None]]
"""From a task, the tools at hand and the model's confidence; None when they seem to do, or nothing was asked for."""


def gap_key(missing: str) -> str:
    """What requests for the same thing have in common: their words, however they are inflected and ordered.

    >>> gap_key("retrieve stock portfolio performance") == gap_key("Show the performance of my stock portfolio")
    True
    """
    stems = {stem(word) for word in words(missing)}
    return digest(" ".join(sorted(stems - set(map(stem, _listed.says_little))) or sorted(stems)))[:KEY_CHARS]


class GapRow(Entity):
    """One time that something was missing."""

    id: str
    created_at: Moment
    run_id: str | None
    principal_id: str | None = None
    """On whose behalf it was asked for."""
    report: ToolGapReport
    gap_key: str | None = None
    """Which gap it is; None for what was kept before gaps were counted."""
    missing: str | None = None
    """Of the report's missing tools, the one that this row counts."""


class Gap(Entity):
    """What is missing, with how often it was asked for."""

    key: str
    missing: str
    """As it was said last."""
    times: int
    people: int
    """Different principals; those whom nobody knows count as one."""
    first_at: Moment
    last_at: Moment
    report: ToolGapReport
    """The latest."""
    run_id: str | None = None
    """In which run that was."""
    dismissed_by: str | None = None
    dismissed_at: Moment | None = None
