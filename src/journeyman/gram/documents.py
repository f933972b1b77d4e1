"""Agents and tools ⇄ documents.

    [hello:Agent {instruction: "Greet people.", model: "openai:gpt-5-mini"} |
      [say_hello:Tool {description: "Greets somebody"} | (name::String)==>(::String)],
      say_goodbye]
    [say_goodbye:Tool {description: "Parts with somebody", typeSignature: "(name: Text) --> IO Text"}]

* An identifier is the name; one that no identifier can hold stands in a property ``name``. The other properties are the
  fields of a tool's specification or of an agent, in their own names; what equals the default is not written.
* A tool's signature is its one element, a path, or the property ``typeSignature``; without either it has no parameters.
* Tools that several agents share stand beside them and are referred to by their identifiers. A tool inside an agent is
  that agent's own, but may be referred to where no other has its name.
* ``closed: true`` says that a schema forbids other arguments (``additionalProperties: false``). Where a signature does
  not give a specification's schemas back to the letter, ``parameters`` and ``returns`` hold them as JSON.
* Elements with other labels are none of our business.

This module writes; `reading` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.core.signature import read_signature, write_signature
from journeyman.core.specification import ToolSpecification
from journeyman.gram.data import Document, Label, Path, Pattern, Property, Reference, Subject
from journeyman.gram.parsing import parse
from journeyman.gram.values import awkward, to_gram

SIGNATURE = "typeSignature"
SCHEMAS = ("parameters", "returns")
TOOL_FIELDS = [name for name in ToolSpecification.model_fields if name not in ("name", "signature", *SCHEMAS)]


@dataclass(frozen=True, slots=True)
class Described:
    """An agent as a document has it: fields that differ from their defaults, and tools."""

    name: str
    fields: Mapping[str, Any]
    tools: tuple[ToolSpecification, ...]


# -- writing


def agents_document(agents: Sequence[Described]) -> Document:
    """Agents as a document; tools that several of them share stand at its end, once."""
    uses: dict[str, list[ToolSpecification]] = {}
    for agent in agents:
        for item in agent.tools:
            uses.setdefault(item.name, []).append(item)
    shared = {
        name: found[0]
        for name, found in uses.items()
        if len(found) > 1 and all(each == found[0] for each in found) and not awkward(name)
    }
    elements = [_agent_element(agent, shared) for agent in agents]
    return Document(elements=(*elements, *map(_tool_element, shared.values())))


def tools_document(tools: Iterable[ToolSpecification]) -> Document:
    """Tools as a document."""
    return Document(elements=tuple(map(_tool_element, tools)))


def _agent_element(agent: Described, shared: Mapping[str, ToolSpecification]) -> Pattern:
    tools = tuple(Reference(item.name) if item.name in shared else _tool_element(item) for item in agent.tools)
    return Pattern(_subject("Agent", agent.name, agent.fields), tools)


def _tool_element(item: ToolSpecification) -> Pattern:
    fields: dict[str, Any] = {}
    for name, field in ToolSpecification.model_fields.items():
        value = getattr(item, name)
        if name in TOOL_FIELDS and value != field.get_default(call_default_factory=True):
            fields[name] = sorted(value) if isinstance(value, frozenset) else value
    said = read_signature(item.signature)
    canonical = write_signature(said.parameters, said.returns)
    if item.signature != canonical:
        fields[SIGNATURE] = item.signature
    if item.parameters != said.parameters:
        closed = item.parameters == said.parameters | {"additionalProperties": False}
        fields |= {"closed": True} if closed else {"parameters": item.parameters}
    if item.returns != said.returns:
        fields["returns"] = item.returns
    return Pattern(_subject("Tool", item.name, fields), () if SIGNATURE in fields else (_signature_path(canonical),))


def _signature_path(signature: str) -> Path:
    [path] = parse(signature).elements
    assert isinstance(path, Path)
    return path


def _subject(label: str, name: str, fields: Mapping[str, Any]) -> Subject:
    said = {"name": name, **fields} if awkward(name) else fields
    properties = []
    for key, value in said.items():
        plain = list(value) if isinstance(value, tuple) else value
        try:
            properties.append(Property(key, to_gram(plain)))
        except ValueError as error:
            raise ValueError(f"{label.lower()} {name!r}: {key!r} cannot be written as gram: {error}") from error
    return Subject(None if awkward(name) else name, (Label(label),), tuple(properties))
