"""Name → tool: register, look up, bind to an agent, narrow, search, lint, count. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, overload
from weakref import WeakSet

from journeyman.core.calls import speaks_for_tool
from journeyman.core.data import SEARCHED_CHARS, Latest
from journeyman.core.errors import BindingError, ConfigurationError, ToolDefinitionError
from journeyman.core.specification import ToolSpecification
from journeyman.tools.decorator import tool
from journeyman.tools.tool import Tool, why_not_registrable

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent
    from journeyman.core.events import Event
    from journeyman.core.protocols import Embedder
    from journeyman.retrieval.search import BM25, Hit, HybridIndex
    from journeyman.tools.checks import Finding
    from journeyman.tools.sources import FollowedSources, SourceProblem, ToolSource

AnyTool: TypeAlias = Tool[..., Any]
Missing: TypeAlias = Literal["refuse", "skip"]

ALIASES = "aliases"
"""In a tool's metadata: other names under which it can be called."""
_BINDINGS_KEPT = 64
_WORD_ENDS = re.compile(r"[._-]+|(?<=[a-z0-9])(?=[A-Z])")


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
    skipped: tuple[str, ...] = ()
    """Names without a fitting implementation, where those are left out."""
    aliases: Mapping[str, AnyTool] = field(default_factory=dict)
    """Other names under which a model may call them, and is not told of."""
    restricted: bool = False
    """Whether some need a permission."""


class ToolLibrary:
    """Holds implementations. Names are unique; what is not registered does not exist for any agent.

    The tools of ``sources`` are there while the library is open (``async with library:``), and come and go as the
    sources say. ``only()``, ``|`` and ``prefixed()`` make views, which follow the libraries they are made of; opening a
    view opens these. With ``tolerant``, a source that cannot be opened is one of the ``problems()`` and is tried again;
    else nothing opens. A library that is given no sources at all can get none later.
    """

    def __init__(
        self,
        tools: Iterable[AnyTool | Callable[..., Any]] = (),
        *,
        embedder: Embedder | None = None,
        sources: Iterable[ToolSource] | None = None,
        tolerant: bool = False,
    ) -> None:
        self.version = 0
        """Grows with every change: whoever decides what a model is offered looks here whether to decide again."""
        self._tools: dict[str, AnyTool] = {}
        self._counts: dict[str, Counts] = {}
        self._embedder = embedder
        self._by_words: BM25 | None = None
        self._by_meaning: HybridIndex | None = None
        self._indexed: dict[str, AnyTool] = {}
        """The tools whose texts ``_by_meaning`` holds."""
        self._bindings: Latest[tuple[int, Missing, bool, bool], tuple[Any, BoundTools]] = Latest(_BINDINGS_KEPT)
        self._bases: tuple[ToolLibrary, ...] = ()
        self._derive: Callable[[], Iterable[AnyTool]] = tuple
        self._derived: dict[str, AnyTool] = {}
        self._views: WeakSet[ToolLibrary] = WeakSet()
        self.listeners: set[Callable[[str], None]] = set()
        """Told the address of each published resource that has changed; a door's business."""
        self._sources: FollowedSources | None = None
        if sources is not None:
            from journeyman.tools.sources import FollowedSources

            self._sources = FollowedSources(sources, taken=self.__contains__, update=self._update, tolerant=tolerant)
        for item in tools:
            self.register(item)

    # --- what changes it

    def register(self, item: AnyTool | Callable[..., Any], *, replace: bool = False) -> AnyTool:
        """Add a tool, or a plain function as one. A name that is taken is refused unless ``replace`` is set."""
        if not isinstance(item, Tool):
            if isinstance(item, type) or not callable(item):
                raise ToolDefinitionError(f"{item!r} is not a tool; pass a tool or a function")
            item = tool(item)
        if (why := why_not_registrable(item)) is not None:
            raise ToolDefinitionError(why)
        if item.name in self._tools and not replace:
            raise ToolDefinitionError(f"a tool named {item.name!r} is registered already; names are unique")
        if self._sources is not None:
            self._sources.release(item.name)
        self._update({item.name: item})
        return item

    def unregister(self, name: str) -> None:
        """Take a tool away. One that a source has brought stays away until the source changes it."""
        if name not in self._tools:
            raise ToolDefinitionError(self._unknown(name))
        if self._sources is not None:
            self._sources.release(name)
        self._update({}, [name])
        if self._sources is not None:
            self._sources.retry_refused()

    def reset(self, tools: Iterable[AnyTool]) -> None:
        """Make these its tools, as one change. For libraries without sources."""
        wanted = {item.name: item for item in tools}
        for item in wanted.values():
            if (why := why_not_registrable(item)) is not None:
                raise ToolDefinitionError(why)
        if wanted != self._tools:
            self._update(wanted, [name for name in self._tools if name not in wanted])

    def deprecate(self, name: str, instead: str | None = None) -> None:
        """Mark a tool as deprecated: it still works, and models are told not to start using it."""
        self._update({name: self[name].with_changes(deprecated=instead or True)})

    def _update(self, tools: Mapping[str, AnyTool], gone: Iterable[str] = ()) -> None:
        for name in gone:
            self._tools.pop(name, None)
        self._tools.update(tools)
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._by_words = None
        self._bindings.clear()
        for view in tuple(self._views):
            view._follow_bases()

    def updated(self, uri: str) -> None:
        """Say that a resource has changed, e.g. "orders://7": clients in this process that subscribe to it are told."""
        for listener in tuple(self.listeners):
            listener(uri)
        for view in tuple(self._views):
            view.updated(uri)

    # --- sources

    @property
    def has_sources(self) -> bool:
        """Whether some of its tools are there only while it is open."""
        return self._sources is not None or any(base.has_sources for base in self._bases)

    async def open(self) -> None:
        """Open every source, register its tools and follow it; once for all who have opened the library.

        Raises ConfigurationError, which names each source that cannot be opened; then none is left open.
        """
        if not self._bases and self._sources is None:
            return
        async with AsyncExitStack() as opened:
            for base in self._bases:
                await base.open()
                opened.push_async_callback(base.close)
            if self._sources is not None:
                await self._sources.open()
            opened.pop_all()

    async def close(self) -> None:
        """Undo one ``open()``; with the last one the tools of the sources go away."""
        if self._sources is not None:
            await self._sources.close()
        for base in self._bases:
            await base.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def exchange_sources(
        self, *, added: Iterable[ToolSource], removed: Iterable[ToolSource], and_then: Callable[[], None] = lambda: None
    ) -> None:
        """Open and list the new sources, take all of this over in one moment with ``and_then``, close the old ones.

        Raises ConfigurationError where a new one cannot be opened; then nothing has changed.
        """
        if self._sources is None:
            raise ConfigurationError("this library was made without 'sources', so it is not known who has it open")
        await self._sources.exchange(list(added), list(removed), and_then)

    def problems(self) -> list[SourceProblem]:
        """What is wrong with the sources of an open library and their tools, such as names that are taken."""
        problems = [problem for base in self._bases for problem in base.problems()]
        return problems + self._sources.problems() if self._sources is not None else problems

    def _may_bring_more(self) -> bool:
        """Whether there are sources that have not been opened yet."""
        waits = self._sources is not None and not self._sources.is_open
        return waits or any(base._may_bring_more() for base in self._bases)

    # --- looking up

    def lookup(self, name: str) -> AnyTool | None:
        """By its name, or by another one under which it can be called."""
        return self._tools.get(name) or _other_names(self._tools.values()).get(name)

    def __getitem__(self, name: str) -> AnyTool:
        try:
            return self._tools[name]
        except KeyError:
            raise KeyError(self._unknown(name)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def embedder(self) -> Embedder | None:
        """What tools are found by meaning with."""
        return self._embedder

    def names(self) -> list[str]:
        return list(self._tools)

    def specifications(self) -> list[ToolSpecification]:
        return [item.specification for item in self._tools.values()]

    def nearest(self, name: str, *, k: int = 3) -> list[str]:
        """Registered names that look or read most like this one."""
        return nearest_names(name, self._tools, k=k)

    def _unknown(self, name: str) -> str:
        near = self.nearest(name)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        return f"no tool named {name!r} is registered{hint}"

    # --- views

    def only(self, names: Iterable[str]) -> ToolLibrary:
        """A view with just these tools; counts stay shared. Unknown names are an error that lists them all.

        Before the sources are opened nobody knows what they bring: then any name may be given.
        """
        wanted = list(names)
        unknown = [name for name in wanted if name not in self._tools]
        if unknown and not self._may_bring_more():
            raise ToolDefinitionError(f"not registered: {', '.join(map(repr, unknown))}")
        view = self._view(self, derive=lambda: [self._tools[name] for name in wanted if name in self._tools])
        view._counts = self._counts
        return view

    def __or__(self, over: ToolLibrary) -> ToolLibrary:
        """A view of the tools of both. Where both have a name, the right one's counts."""
        if not isinstance(over, ToolLibrary):
            return NotImplemented
        return self._view(self, over, derive=lambda: {**self._tools, **over._tools}.values())

    def prefixed(self, prefix: str) -> ToolLibrary:
        """A view of the same tools under names that begin so, for libraries whose names would clash."""
        made: dict[str, tuple[AnyTool, AnyTool]] = {}

        def derive() -> Iterator[AnyTool]:
            for name, item in self._tools.items():
                if name not in made or made[name][0] is not item:
                    made[name] = (item, item.with_changes(name=f"{prefix}{name}"))
                yield made[name][1]

        return self._view(self, derive=derive)

    def mapped(self, change: Callable[[AnyTool], AnyTool]) -> ToolLibrary:
        """A view of these tools, each as ``change`` makes it; one that is to stay the same must be the same object.

        What ``change`` goes by may change: then ``refresh()``.
        """
        return self._view(self, derive=lambda: [change(item) for item in self._tools.values()])

    def refresh(self) -> None:
        """Make a view again from the libraries it is made of, as one change."""
        self._follow_bases()

    def _view(self, *bases: ToolLibrary, derive: Callable[[], Iterable[AnyTool]]) -> ToolLibrary:
        view = ToolLibrary(embedder=next((base._embedder for base in reversed(bases) if base._embedder), None))
        view._bases, view._derive = bases, derive
        for base in bases:
            base._views.add(view)
        view._follow_bases()
        return view

    def _follow_bases(self) -> None:
        derived = {item.name: item for item in self._derive()}
        if derived != self._derived:
            own = {name: item for name, item in self._tools.items() if self._derived.get(name) is not item}
            self._derived, self._tools = derived, {**derived, **own}
            self._changed()

    @classmethod
    def from_paths(cls, paths: Iterable[str]) -> ToolLibrary:
        """The tools at import paths, ``module:name`` or ``file.py:name``. Every bad path is told at once.

        A path may lead to a tool, a plain function or a whole library.
        """
        from journeyman.tools.paths import tools_at

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

    # --- binding

    @overload
    def bind(
        self, agent: ToolSpecification, *, missing: Literal["refuse"] = ..., descriptions: bool = ...
    ) -> AnyTool: ...

    @overload
    def bind(
        self, agent: ToolSpecification, *, missing: Literal["skip"], descriptions: bool = ...
    ) -> AnyTool | None: ...

    @overload
    def bind(
        self, agent: Agent, *, missing: Missing = ..., descriptions: bool = ..., everything: bool = ...
    ) -> BoundTools: ...

    def bind(
        self,
        agent: Agent | ToolSpecification,
        *,
        missing: Missing = "refuse",
        descriptions: bool = True,
        everything: bool = False,
    ) -> BoundTools | AnyTool | None:
        """Give every specification of an agent its implementation, or one specification its own.

        Every mismatch is listed at once in a BindingError; with ``missing="skip"``, what has no fitting implementation
        is left out instead, for runs that go on although tools have come and gone. A run that began under older
        descriptions goes on with them: then ``descriptions`` need not be equal. With ``everything`` all other tools of
        the library are bound as well.
        """
        if isinstance(agent, ToolSpecification):
            fitting = self._fitting(agent, descriptions=descriptions)
            if not isinstance(fitting, Tool) and missing == "refuse":
                raise BindingError(agent.name, fitting, kind="tool")
            return fitting if isinstance(fitting, Tool) else None
        key = (id(agent.tools), missing, descriptions, everything)
        kept = self._bindings.get(key)
        if kept is not None and kept[0] is agent.tools:
            return kept[1]
        bound = self._bind(agent, missing, descriptions=descriptions, everything=everything)
        self._bindings[key] = (agent.tools, bound)
        return bound

    def _bind(self, agent: Agent, missing: Missing, *, descriptions: bool, everything: bool) -> BoundTools:
        mismatches: dict[str, list[str]] = {}
        by_name: dict[str, AnyTool] = {}
        for wanted in agent.tools:
            fitting = self._fitting(wanted, descriptions=descriptions)
            if isinstance(fitting, Tool):
                by_name[wanted.name] = fitting
            else:
                mismatches[wanted.name] = fitting
        if mismatches and missing == "refuse":
            raise BindingError(agent.name, [line for lines in mismatches.values() for line in lines])
        if everything:
            by_name |= {name: item for name, item in self._tools.items() if name not in by_name}
        # The library's word counts where the two are free to differ: a tool switched off here is not offered.
        offered = tuple(fitting.specification for fitting in by_name.values() if fitting.specification.enabled)
        restricted = any(item.permissions for item in offered)
        return BoundTools(by_name, offered, tuple(mismatches), _other_names(by_name.values()), restricted)

    def _fitting(self, wanted: ToolSpecification, *, descriptions: bool) -> AnyTool | list[str]:
        """The implementation of a specification, or why there is none."""
        registered = self._tools.get(wanted.name)
        if registered is None:
            near = self.nearest(wanted.name)
            hint = f" (nearest: {', '.join(near)})" if near else ""
            return [f"{wanted.name}: no implementation is registered{hint}"]
        if registered.specification is wanted:
            return registered
        from journeyman.tools.checks import specification_mismatches

        return specification_mismatches(wanted, registered.specification, descriptions=descriptions) or registered

    # --- search, lint, counts

    def search(self, text: str, *, k: int = 5) -> list[tuple[AnyTool, float]]:
        """Tools whose name, description, tags and parameters share words with the text, best first."""
        if self._by_words is None:
            from journeyman.retrieval.search import BM25

            self._by_words = BM25({name: searchable(item.specification) for name, item in self._tools.items()})
        return [(self._tools[name], score) for name, score in self._by_words.rank(text, k=k)]

    async def find(self, text: str, *, k: int = 5) -> list[tuple[AnyTool, Hit]]:
        """Like ``search``, and with an embedder also by meaning. The first call makes the vectors of new tools."""
        if self._by_meaning is None:
            from journeyman.retrieval.search import HybridIndex

            self._by_meaning = HybridIndex(embedder=self._embedder)
        if self._indexed != self._tools:
            self._by_meaning.remove(name for name in self._indexed if name not in self._tools)
            # Before waiting: who registers a tool meanwhile makes the two differ again.
            self._indexed = dict(self._tools)
            await self._by_meaning.put({name: searchable(item.specification) for name, item in self._indexed.items()})
        hits = await self._by_meaning.search(text, k=k)
        return [(self._tools[hit.id], hit) for hit in hits if hit.id in self._tools]

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> list[str]:
        """The names of the ``k`` of these tools that ``find`` puts first: the ranking of a run that is given none."""
        wanted = {item.name for item in tools}
        nearest = await self.find(text, k=k + max(0, len(self._tools) - len(wanted)))
        return [item.name for item, _ in nearest if item.name in wanted][:k]

    def lint(self) -> list[Finding]:
        """What a model may stumble over; nothing here is an error."""
        from journeyman.tools.checks import lint_tools

        return lint_tools(self.specifications())

    def counts(self, name: str) -> Counts:
        return self._counts.setdefault(name, Counts())

    def count(self, event: Event) -> None:
        """Hear a run's events: what its calls tell of their tools."""
        if event.type == "call_finished":
            record = event.record
            if (success := speaks_for_tool(record.status, attempts=record.attempts)) is not None:
                counts = self.counts(record.tool_name)
                counts.success_count += success
                counts.failure_count += not success


def _other_names(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    by_name: dict[str, AnyTool] = {}
    for item in tools:
        by_name.setdefault(item.specification.name_for_models, item)
        if isinstance(aliases := item.specification.metadata.get(ALIASES), list):
            by_name.update(dict.fromkeys(map(str, aliases), item))
    return by_name


def nearest_names(name: str, known: Iterable[str], *, k: int = 3) -> list[str]:
    """Known names that look most like this one, ignoring case and underscores."""
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.lower().replace("_", ""), candidate)
    close = get_close_matches(name.lower().replace("_", ""), list(folded), n=k, cutoff=0.5)
    return [folded[match] for match in close]


def searchable(specification: ToolSpecification) -> str:
    """What a tool is found by."""
    properties: Mapping[str, Any] = specification.parameters.get("properties", {})
    described = [
        f"{name} {schema.get('description', '') if isinstance(schema, dict) else ''}"
        for name, schema in properties.items()
    ]
    # A model of meaning knows words, not identifiers.
    name = _WORD_ENDS.sub(" ", specification.name)
    return " ".join([name, specification.description[:SEARCHED_CHARS], *specification.tags, *described])[
        :SEARCHED_CHARS
    ]
