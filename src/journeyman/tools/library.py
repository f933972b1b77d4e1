"""Name → tool: register, look up, bind to an agent, narrow, search, lint, count. Runs nothing."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias

from journeyman.core.errors import BindingError, ToolDefinitionError
from journeyman.core.protocols import Embedder
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.retrieval.bm25 import BM25
from journeyman.retrieval.fusion import Hit
from journeyman.retrieval.search import HybridIndex
from journeyman.tools.lint import Finding, lint_tools
from journeyman.tools.mismatches import specification_mismatches
from journeyman.tools.paths import tools_at
from journeyman.tools.tool import Tool

AnyTool: TypeAlias = Tool[..., Any]

_BINDINGS_KEPT = 64
_WORD_ENDS = re.compile(r"[._-]+|(?<=[a-z0-9])(?=[A-Z])")


class HasTools(Protocol):
    """What binding needs to know of an agent."""

    @property
    def name(self) -> str: ...

    @property
    def tools(self) -> tuple[ToolSpecification, ...]: ...


@dataclass(slots=True)
class Counts:
    """How a tool has fared in this process."""

    success_count: int = 0
    failure_count: int = 0


@dataclass(frozen=True, slots=True)
class BoundTools:
    """An agent's specifications, each with its implementation, in the agent's order."""

    by_name: Mapping[str, AnyTool]
    offered: tuple[ToolSpecification, ...]
    """What a model is told; the same object for every run, so that adapters can encode it once."""


class ToolLibrary:
    """Holds implementations. Names are unique; what is not registered does not exist for any agent."""

    def __init__(self, tools: Iterable[AnyTool] = (), *, embedder: Embedder | None = None) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._counts: dict[str, Counts] = {}
        self._index: BM25 | None = None
        self._embedder = embedder
        self._hybrid = HybridIndex(embedder=embedder)
        self._indexed = False
        self.version = 0
        self._bindings: OrderedDict[int, tuple[tuple[ToolSpecification, ...], BoundTools]] = OrderedDict()
        for item in tools:
            self.register(item)

    def register(self, item: AnyTool, *, replace: bool = False) -> None:
        """Add a tool. A name that is taken is refused unless ``replace`` is set."""
        if not isinstance(item, Tool):
            raise ToolDefinitionError(f"{item!r} is not a tool; decorate it with @tool or pass tool({item!r})")
        if item.unbound:
            raise ToolDefinitionError(f"{item.name!r} is a method of a class; register it from an instance")
        if item.name in RESERVED_NAMES:
            raise ToolDefinitionError(f"the name {item.name!r} is reserved; give another with tool(name=...)")
        if item.name in self._tools and not replace:
            raise ToolDefinitionError(f"a tool named {item.name!r} is registered already; names are unique")
        self._tools[item.name] = item
        self._changed()

    def unregister(self, name: str) -> None:
        del self._tools[name]
        self._changed()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _changed(self) -> None:
        self.version += 1
        self._index = None
        self._indexed = False
        self._bindings.clear()

    # --- looking up

    def lookup(self, name: str) -> AnyTool | None:
        return self._tools.get(name)

    def __getitem__(self, name: str) -> AnyTool:
        try:
            return self._tools[name]
        except KeyError:
            near = self.nearest(name)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise KeyError(f"no tool named {name!r} is registered{hint}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def names(self) -> list[str]:
        return list(self._tools)

    def specifications(self) -> list[ToolSpecification]:
        return [item.specification for item in self._tools.values()]

    def nearest(self, name: str, *, k: int = 3) -> list[str]:
        """Registered names that look or read most like this one."""
        return nearest_names(name, self._tools, k=k)

    def only(self, names: Iterable[str]) -> ToolLibrary:
        """A view with just these tools; counts stay shared. Unknown names are an error that lists them all."""
        wanted = list(names)
        if unknown := [name for name in wanted if name not in self._tools]:
            raise ToolDefinitionError(f"not registered: {', '.join(map(repr, unknown))}")
        view = ToolLibrary((self._tools[name] for name in wanted), embedder=self._embedder)
        view._counts = self._counts
        return view

    def deprecate(self, name: str, instead: str | None = None) -> None:
        """Mark a tool as deprecated: it still works, and models are told not to start using it."""
        self.register(self[name].with_changes(deprecated=instead or True), replace=True)

    # --- composing

    @classmethod
    def from_paths(cls, paths: Iterable[str]) -> ToolLibrary:
        """The tools at import paths, ``module:name`` or ``file.py:name``. Every bad path is told at once.

        A path may lead to a tool, a plain function or a whole library.
        """
        return cls(tools_at(paths, expand=lambda value: value if isinstance(value, ToolLibrary) else None))

    @classmethod
    def for_environment(
        cls, environment: str, layers: Mapping[str, ToolLibrary], *, base: ToolLibrary | None = None
    ) -> ToolLibrary:
        """The base with one environment's layer over it."""
        if environment not in layers:
            known = ", ".join(map(repr, layers)) or "none"
            raise ToolDefinitionError(f"no layer of tools for the environment {environment!r}; there are {known}")
        return (base if base is not None else cls()) | layers[environment]

    def __or__(self, over: ToolLibrary) -> ToolLibrary:
        """A library with the tools of both. Where both have a name, the right one's counts."""
        if not isinstance(over, ToolLibrary):
            return NotImplemented
        return ToolLibrary({**self._tools, **over._tools}.values())

    def prefixed(self, prefix: str) -> ToolLibrary:
        """The same tools under names that begin so, for libraries whose names would clash."""
        return ToolLibrary(item.with_changes(name=f"{prefix}{item.name}") for item in self)

    # --- binding

    def bind(
        self, agent: HasTools, *, missing: Literal["refuse", "skip"] = "refuse", descriptions: bool = True
    ) -> BoundTools:
        """Give every specification of the agent its implementation, or list every mismatch at once.

        A run that began under older descriptions goes on with them: then ``descriptions`` need not be equal.
        """
        if not descriptions or missing == "skip":
            return self._bind(agent, missing=missing, descriptions=descriptions)
        kept = self._bindings.get(id(agent.tools))
        if kept is not None and kept[0] is agent.tools:
            return kept[1]
        bound = self._bind(agent)
        self._bindings[id(agent.tools)] = (agent.tools, bound)
        while len(self._bindings) > _BINDINGS_KEPT:
            self._bindings.popitem(last=False)
        return bound

    def _bind(self, agent: HasTools, *, missing: str = "refuse", descriptions: bool = True) -> BoundTools:
        mismatches: list[str] = []
        by_name: dict[str, AnyTool] = {}
        own = {item.name: item for item in getattr(agent, "own_tools", ())}
        for wanted in agent.tools:
            found = self._tools.get(wanted.name) or own.get(wanted.name)
            if found is None:
                near = self.nearest(wanted.name)
                hint = f" (nearest: {', '.join(near)})" if near else ""
                mismatches.append(f"{wanted.name}: no implementation is registered{hint}")
                continue
            differ = specification_mismatches(wanted, found.specification, descriptions=descriptions)
            mismatches += differ
            if differ and missing == "skip":
                continue
            by_name[wanted.name] = found
        if mismatches and missing == "refuse":
            raise BindingError(agent.name, mismatches)
        # The library's word counts where the two are free to differ: a tool switched off here is not offered.
        return BoundTools(by_name, tuple(t.specification for t in by_name.values() if t.specification.enabled))

    # --- search, lint, counts

    def search(self, text: str, *, k: int = 5) -> list[tuple[AnyTool, float]]:
        """Tools whose name, description, tags and parameters share words with the text, best first."""
        if self._index is None:
            self._index = BM25({name: searchable(item.specification) for name, item in self._tools.items()})
        return [(self._tools[name], score) for name, score in self._index.rank(text, k=k)]

    async def find(self, text: str, *, k: int = 5) -> list[tuple[AnyTool, Hit]]:
        """Like ``search``, and with an embedder also by meaning. The first call makes the vectors of new tools."""
        if not self._indexed:
            self._indexed = True  # before waiting: a tool registered meanwhile makes it False again
            await self._hybrid.put({name: searchable(item.specification) for name, item in self._tools.items()})
        return [(self._tools[hit.id], hit) for hit in await self._hybrid.search(text, k=k)]

    def lint(self) -> list[Finding]:
        """What a model may stumble over; nothing here is an error."""
        return lint_tools(self.specifications())

    def counts(self, name: str) -> Counts:
        return self._counts.setdefault(name, Counts())

    def count(self, name: str, *, success: bool) -> None:
        counts = self._counts.setdefault(name, Counts())
        if success:
            counts.success_count += 1
        else:
            counts.failure_count += 1


def nearest_names(name: str, known: Iterable[str], *, k: int = 3) -> list[str]:
    """Known names that look most like this one, ignoring case and underscores."""
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.lower().replace("_", ""), candidate)
    close = get_close_matches(name.lower().replace("_", ""), list(folded), n=k, cutoff=0.5)
    return [folded[match] for match in close]


def searchable(specification: ToolSpecification) -> str:
    """What a tool is found by."""
    properties: Mapping[str, Any] = specification.parameters.get("properties", {})
    described: Sequence[str] = [
        f"{name} {schema.get('description', '') if isinstance(schema, dict) else ''}"
        for name, schema in properties.items()
    ]
    # A model of meaning knows words, not identifiers.
    name = _WORD_ENDS.sub(" ", specification.name)
    return " ".join([name, specification.description, *specification.tags, *described])
