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
* A tool's label may also be ``ToolSpecification``. Elements with other labels are left alone; one that is nearly one of
  these is a typo, and refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from journeyman.core.errors import InvalidDataError, SignatureError, ToolDefinitionError
from journeyman.core.specification import ToolSpecification
from journeyman.gram import data
from journeyman.gram.parsing import parse, read
from journeyman.gram.printing import dumps, path_text
from journeyman.gram.signature import Signature, read_signature, write_signature

A = TypeVar("A")

_SIGNATURE = "typeSignature"
_AGENT = frozenset({"Agent"})
_TOOL = frozenset({"Tool", "ToolSpecification"})
_SCHEMAS = ("parameters", "returns")
_TOOL_FIELDS = [name for name in ToolSpecification.model_fields if name not in ("name", "signature", *_SCHEMAS)]
_TOOL_PROPERTIES = ["name", *_TOOL_FIELDS, _SIGNATURE, "closed", *_SCHEMAS]


@dataclass(frozen=True, slots=True)
class Described:
    """An agent as a document has it: fields that differ from their defaults, and tools."""

    name: str
    fields: Mapping[str, Any]
    tools: tuple[ToolSpecification, ...]


# -- writing


def agents_document(agents: Sequence[Described]) -> data.Document:
    """Agents as a document; tools that several of them share stand at its end, once."""
    uses: dict[str, list[ToolSpecification]] = {}
    for agent in agents:
        for item in agent.tools:
            uses.setdefault(item.name, []).append(item)
    shared = {
        name: same[0]
        for name, same in uses.items()
        if len(same) > 1 and all(each == same[0] for each in same) and not data.awkward(name)
    }
    elements: list[data.Element] = []
    for agent in agents:
        tools = (data.Reference(item.name) if item.name in shared else _tool_element(item) for item in agent.tools)
        elements.append(data.Pattern(_subject("Agent", agent.name, agent.fields), tuple(tools)))
    return data.Document(elements=(*elements, *map(_tool_element, shared.values())))


def tools_document(tools: Iterable[ToolSpecification]) -> data.Document:
    """Tools as a document."""
    return data.Document(elements=tuple(map(_tool_element, tools)))


def _tool_element(item: ToolSpecification) -> data.Pattern:
    fields: dict[str, Any] = {}
    for name, field in ToolSpecification.model_fields.items():
        value = getattr(item, name)
        if name in _TOOL_FIELDS and value != field.get_default(call_default_factory=True):
            fields[name] = sorted(value) if isinstance(value, frozenset) else value
    said = read_signature(item.signature)
    canonical = write_signature(said.parameters, said.returns)
    if item.signature != canonical:
        fields[_SIGNATURE] = item.signature
    if item.parameters != said.parameters:
        closed = item.parameters == said.parameters | {"additionalProperties": False}
        fields |= {"closed": True} if closed else {"parameters": item.parameters}
    if item.returns != said.returns:
        fields["returns"] = item.returns
    path: Any = () if _SIGNATURE in fields else parse(canonical).elements
    return data.Pattern(_subject("Tool", item.name, fields), path)


def _subject(label: str, name: str, fields: Mapping[str, Any]) -> data.Subject:
    said = {"name": name, **fields} if data.awkward(name) else fields
    properties = []
    for key, value in said.items():
        plain = list(value) if isinstance(value, tuple) else value
        try:
            properties.append(data.Property(key, data.to_gram(plain)))
        except ValueError as error:
            raise ValueError(f"{label.lower()} {name!r}: {key!r} cannot be written as gram: {error}") from error
    return data.Subject(None if data.awkward(name) else name, (data.Label(label),), tuple(properties))


def dump_tools(tools: Iterable[ToolSpecification]) -> str:
    """Specifications as canonical gram text; ``load_tools`` gives them back, equal in every field."""
    return dumps(tools_document(tools))


def load_tools(source: str | Path) -> list[ToolSpecification]:
    """The specifications of all tools in a gram text or file, whether inside an agent or beside it."""
    # agents are not made here, so nothing is known of their fields
    return Reader(read(source), dict, ()).tools()


# -- reading


class _RefusedError(Exception):
    """What is being read cannot be used; why is among the faults already."""


class Reader(Generic[A]):
    """One document, read into agents and tools. Everything that is wrong is collected, then raised at once."""

    def __init__(self, document: data.Document, make: Callable[..., A], fields: Iterable[str]) -> None:
        self._source = document.source
        self._make = make
        self._properties = ["name", *fields]
        self._faults: list[data.Fault] = []
        self._tools: dict[int, ToolSpecification | None] = {}
        top = [item.element if isinstance(item, data.Annotated) else item for item in document.elements]
        patterns = [item for item in top if isinstance(item, data.Pattern)]
        self._agents = [item for item in patterns if _is(item, _AGENT)]
        self._beside = [item for item in patterns if _is(item, _TOOL)]
        self._labels = sorted({label.name for item in patterns for label in item.subject.labels})
        inside = [each for agent in self._agents for each in agent.elements if isinstance(each, data.Pattern)]
        self._inside = [item for item in inside if _is(item, _TOOL)]
        for item in patterns:
            if not _is(item, _AGENT | _TOOL):
                self._note_typos(item)

    def agents(self) -> list[A]:
        """All agents of the document; every tool is checked, used or not."""
        made = [agent for pattern in self._agents if (agent := self._attempt(self._agent, pattern)) is not None]
        self._all_tools()
        if not made and not self._faults:
            hint = f"; there are {', '.join(map(repr, self._labels))}" if self._labels else ""
            self._note(0, f"no agent is described here{hint}", '[name:Agent {instruction: "…"} | tools]')
        self._raise()
        return made

    def tools(self) -> list[ToolSpecification]:
        """All tools of the document, each once; equal ones of several agents count as one."""
        tools: list[ToolSpecification] = []
        for item in self._all_tools():
            if item not in tools:
                tools.append(item)
        twice = _repeated(item.name for item in tools)
        if twice and not self._faults:
            names = ", ".join(map(repr, twice))
            self._note(0, f"several agents have different tools of one name: {names}", "a name for each")
        self._raise()
        return tools

    def _all_tools(self) -> list[ToolSpecification]:
        for name in _repeated(_name(item) for item in self._beside):
            again = [item for item in self._beside if _name(item) == name][1]
            self._note(again.at, f"tool {name!r} is described twice", "one description")
        made = [self._tool(item) for item in (*self._beside, *self._inside)]
        return [item for item in made if item is not None]

    # -- one agent, one tool

    def _agent(self, pattern: data.Pattern) -> A:
        values, places = self._values(pattern, self._properties, "Agent")
        tools = [self._element_tool(element) for element in pattern.elements]
        values["tools"] = tuple(item for item in tools if item is not None)
        made: A = self._build(self._make, values, places, pattern)
        return made

    def _element_tool(self, element: data.Inner) -> ToolSpecification | None:
        if isinstance(element, data.Pattern) and _is(element, _TOOL):
            return self._tool(element)
        if not isinstance(element, data.Reference):
            self._note(element.at, "this is no tool", "[name:Tool {…} | signature], or a tool's identifier")
            return None
        name = str(element.identifier)
        named = [item for item in self._beside if _name(item) == name]
        named = named or [item for item in self._inside if _name(item) == name]
        if not named:
            known = [_name(item) or "" for item in (*self._beside, *self._inside)]
            near = get_close_matches(name, known)
            hint = f" (nearest: {', '.join(near)})" if near else ""
            self._note(element.at, f"no tool {name!r} is described here{hint}", "a tool's identifier")
            return None
        tools = [self._tool(item) for item in named]
        if any(item != tools[0] for item in tools):
            self._note(element.at, f"agents have different tools called {name!r}", "one, described beside the agents")
            return None
        return tools[0]

    def _tool(self, pattern: data.Pattern) -> ToolSpecification | None:
        if id(pattern) not in self._tools:
            self._tools[id(pattern)] = self._attempt(self._read_tool, pattern)
        return self._tools[id(pattern)]

    def _read_tool(self, pattern: data.Pattern) -> ToolSpecification:
        values, places = self._values(pattern, _TOOL_PROPERTIES, "Tool")
        text, place = self._signature_text(pattern, values, places)
        closed = values.pop("closed", False)
        if not isinstance(closed, bool):
            self._refuse(places["closed"], "'closed' has a value of the wrong kind", "true or false")
        if text is not None:
            said = self._signature(text, place, values["name"])
            parameters = said.parameters | {"additionalProperties": False} if closed else said.parameters
            values = {"parameters": parameters, "returns": said.returns, **values}
            values["signature"] = text if _SIGNATURE in places else write_signature(said.parameters, said.returns)
        made: ToolSpecification = self._build(ToolSpecification, values, places, pattern)
        return made

    def _signature_text(
        self, pattern: data.Pattern, values: dict[str, Any], places: Mapping[str, int | None]
    ) -> tuple[str | None, int | None]:
        """The signature and where it stands; None where none is given."""
        written = values.pop(_SIGNATURE, None)
        if not pattern.elements:
            if written is not None and not isinstance(written, str):
                self._refuse(places[_SIGNATURE], f"{_SIGNATURE!r} has a value of the wrong kind", "a string")
            return written, places.get(_SIGNATURE)
        path = pattern.elements[-1]
        if len(pattern.elements) > 1 or not isinstance(path, data.Path):
            self._refuse(path.at, "this is no signature", "one path, such as (name::String)==>(::String)")
        if written is not None:
            self._refuse(path.at, "the signature is said twice", f"a path or {_SIGNATURE!r}, not both")
        return path_text(path), path.at

    def _signature(self, text: str, place: int | None, name: str) -> Signature:
        try:
            return read_signature(text)
        except SignatureError as error:
            wrong = str(error).partition("; expected")[0].partition(": ")[2]
            shown = text.split("\n")[error.line - 1][error.column - 1 :][:40]
            self._refuse(place, f"the signature of {name!r} is wrong before {shown!r}: {wrong}", error.expected)

    def _values(
        self, pattern: data.Pattern, known: Sequence[str], label: str
    ) -> tuple[dict[str, Any], dict[str, int | None]]:
        """A subject's properties as plain values, and where they stand."""
        values: dict[str, Any] = {}
        places: dict[str, int | None] = {}
        for item in pattern.subject.properties:
            name = _SIGNATURE if item.name == "signature" and label == "Tool" else item.name
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                self._note(item.at, f"unknown property {name!r}{hint}", f"one of {', '.join(known)}")
            elif name in places:
                self._note(item.at, f"property {name!r} appears twice", "each property once")
            else:
                places[name] = item.at
                try:
                    values[name] = data.from_gram(item.value)
                except ValueError as error:
                    self._note(item.at, f"property {name!r}: {error}", "another value")
        values.setdefault("name", _name(pattern))
        if values["name"] is None:
            self._refuse(pattern.at, f"this {label} has no name", f"an identifier, [name:{label} …]")
        return values, places

    def _build(
        self, make: Callable[..., Any], values: dict[str, Any], places: Mapping[str, int | None], pattern: data.Pattern
    ) -> Any:
        kind = "tool" if make is ToolSpecification else "agent"
        try:
            return make(**values)
        except (ToolDefinitionError, InvalidDataError) as error:
            for path, rule in error.problems:
                field = re.split(r"[.[]", path)[0]
                message = f"{kind} {values['name']!r}: {path}{': ' if path else ''}{rule}"
                self._note(places.get(field, pattern.at), message, f"a valid {field or kind}")
            raise _RefusedError from error

    # -- faults

    def _note_typos(self, pattern: data.Pattern) -> None:
        known = {name.lower(): name for name in sorted(_AGENT | _TOOL)}
        for label in pattern.subject.labels:
            for near in get_close_matches(label.name.lower(), known, n=1, cutoff=0.75):
                self._note(pattern.at, f"unknown label {label.name!r}; did you mean {known[near]!r}?", known[near])

    def _attempt(self, read: Callable[[data.Pattern], Any], pattern: data.Pattern) -> Any:
        """What was read, or None where anything was wrong with it."""
        before = len(self._faults)
        try:
            made = read(pattern)
        except _RefusedError:
            return None
        return made if len(self._faults) == before else None

    def _refuse(self, at: int | None, message: str, expected: str) -> NoReturn:
        self._note(at, message, expected)
        raise _RefusedError

    def _note(self, at: int | None, message: str, expected: str) -> None:
        source = self._source
        self._faults.append(source.fault(at or 0, message, expected) if source else data.Fault(1, 1, message, expected))

    def _raise(self) -> None:
        if self._faults:
            faults = sorted(self._faults, key=lambda fault: (fault.line, fault.column))
            raise data.GramDocumentError(faults, file=self._source.file if self._source is not None else None)


def _is(pattern: data.Pattern, labels: frozenset[str]) -> bool:
    return any(each.name in labels for each in pattern.subject.labels)


def _name(pattern: data.Pattern) -> str | None:
    return None if pattern.subject.identifier is None else str(pattern.subject.identifier)


def _repeated(names: Iterable[str | None]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1 and name is not None]
