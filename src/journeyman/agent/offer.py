"""What a run may call and what its model is told of it, decided at every step and nowhere else.

A library changes while runs go on: tool servers come and go, settings are edited. So before every question to the
model the offer is brought up to date. It costs one comparison while the library stays as it is, and gives adapters the
same tuple as before, which they have encoded already. Where there are more tools than a model is told of, ``choosing``
says which.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from journeyman.agent.agent import Agent
from journeyman.agent.builtin import (
    FINISH,
    READ_RESULT,
    Read,
    find_tools_tool,
    finish_tool,
    output_tool,
    read_result_tool,
)
from journeyman.core.calls import Artifact
from journeyman.core.errors import ConfigurationError
from journeyman.core.principals import Principal
from journeyman.core.protocols import ToolRanker
from journeyman.core.runs import TaskInput
from journeyman.core.specification import FIND_TOOLS, ToolSpecification
from journeyman.tools.library import ToolLibrary, nearest_names
from journeyman.tools.tool import Tool

logger = logging.getLogger("journeyman.agent")

AnyTool = Tool[..., Any]
RANK_SECONDS = 5.0
"""How long a run waits for a ranking, which may have to make the vectors of all tools first; then it goes by words."""


class Offer:
    """The agent's tools that the library has, narrowed by the task, the principal's permissions and their number.

    ``tools`` is what a call may name: everything that is there, so that a call of a tool which the model was not told
    of still gets its proper answer. ``permitted`` is what it may be told of: enabled, and permitted for the principal.
    ``offered`` is what it is told: all of that or, where it is more than ``most``, what was ``chosen``, with the tools
    of the loop at most so many.
    """

    def __init__(
        self,
        agent: Agent,
        library: ToolLibrary,
        task: TaskInput,
        principal: Principal | None,
        *,
        most: int | None,
        ranker: ToolRanker | None = None,
        chosen: Iterable[str] = (),
    ) -> None:
        self._agent = agent
        self._library = library
        self._task = task
        self._principal = principal
        self._most = most
        self._ranker: ToolRanker = library if ranker is None else ranker
        self._version = -1
        self._builtin: dict[str, AnyTool] = {}
        self.tools: dict[str, AnyTool] = {}
        self.permitted: tuple[ToolSpecification, ...] = ()
        self.offered: tuple[ToolSpecification, ...] = ()
        self.narrowed = False
        """Whether the model is told of some tools only."""
        self.chosen: list[str] = list(chosen)
        """Which, in the order in which they were chosen; some may not be there at the moment."""
        self.before: tuple[str, ...] = ()
        """What the model was told of before there were too many tools."""
        self._by_name: dict[str, ToolSpecification] = {}
        if agent.output is not None:
            self._builtin[FINISH] = output_tool(agent.expected)
        elif agent.finish:
            self._builtin[FINISH] = finish_tool()

    @property
    def names(self) -> list[str]:
        """Of everything that the model may be told of, the tools of the loop included."""
        return [*(item.name for item in self.permitted), *self._builtin]

    def begin(self, *, missing: Literal["refuse", "skip"] = "refuse", descriptions: bool = True) -> None:
        """Decide for the first time. A new run is refused where a tool is missing; a resumed one goes on without it.

        Raises BindingError, or ConfigurationError where the task names a tool that the agent does not have.
        """
        self._decide(missing=missing, descriptions=descriptions)

    def refresh(self) -> None:
        """Take over what has changed in the library since the last step."""
        if self._version != self._library.version:
            self._decide(missing="skip", descriptions=False)

    def limit_to(self, most: int | None) -> None:
        """Tell the model of no more than so many tools, from the next step on."""
        if most != self._most:
            self._most, self._version = most, -1

    def add_reader(self, cut_results: dict[str, str | Artifact], *, limit: int, read: Read) -> None:
        """Offer ``read_result`` from here on: a result was cut."""
        if READ_RESULT not in self._builtin:
            reader = self._builtin[READ_RESULT] = read_result_tool(cut_results, limit=limit, read=read)
            self.tools[READ_RESULT] = reader
            if not self.narrowed:
                self.offered = (*self.offered, reader.specification)

    # --- where there are more than the model is told of

    @property
    def room(self) -> int:
        """How many tools can be chosen: the first of an offer are those of the loop."""
        return max(1, (self._most or 0) - len(self._head()))

    @property
    def crowded(self) -> bool:
        """Whether more were chosen than there is room for: some have come back, or the limit was lowered."""
        return sum(map(self.there, self.chosen)) > self.room

    @property
    def wants_reader(self) -> bool:
        return READ_RESULT in self._builtin and READ_RESULT not in self.chosen

    def name_of(self, told: str) -> str | None:
        """The tool that the model may be told of and that it calls so."""
        tool = self.tools.get(told)
        return tool.name if tool is not None and tool.name in self._by_name else None

    def there(self, name: str) -> bool:
        """Whether the model can be told of it now."""
        return name in self._by_name or (name == READ_RESULT and READ_RESULT in self._builtin)

    def append(
        self, names: Iterable[str], *, used: Mapping[str, int], found: Mapping[str, int]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Offer these as well, after the others; returns which are new, and which had to go because of them.

        ``used`` says of the tools that were called when that was last, ``found`` of those that the model has just
        found when that was. Others go first, the latest before the earlier; then what was found, the oldest first and
        of one search the last; and what was used only where there is nothing else, the one that was not for longest.
        """
        kept = [name for name in self.chosen if self.there(name)]
        wanted = {name: place for place, name in enumerate(dict.fromkeys(names))}
        new = [name for name in wanted if name not in self.chosen and self.there(name)]
        staying = [name for name in kept if name in used or name in wanted or name == READ_RESULT]
        again = [place for name, place in wanted.items() if name in kept]
        at_least = 0 if new and again and wanted[new[0]] > max(again) else 1
        new = new[: max(at_least, self.room - len(staying))]
        going = sorted(
            (name for name in kept if name != READ_RESULT),
            key=lambda name: (used.get(name, -1), found.get(name, -1), -wanted.get(name, kept.index(name))),
        )[: max(0, len(kept) + len(new) - self.room)]
        if new or going:
            self.chosen = [name for name in self.chosen if name not in going] + new
            self._arrange()
        return tuple(new), tuple(going)

    async def rank(self, text: str, *, k: int, without: Iterable[str] = ()) -> list[str]:
        """The names of those that fit a text best; by their words alone where the ranker fails."""
        left = set(without)
        tools: Sequence[ToolSpecification] = self.permitted
        if left:
            tools = [item for item in tools if item.name not in left]
        there = {item.name for item in tools}
        try:
            ranking = asyncio.ensure_future(self._ranker.rank(text, tools, k=k))
            # Nobody may be left to wait for it, and its vectors are of use to the next ranking.
            ranking.add_done_callback(lambda done: done.cancelled() or done.exception())
            async with asyncio.timeout(RANK_SECONDS):
                ranked: Sequence[str] = await asyncio.shield(ranking)
        except Exception as error:
            late = isinstance(error, TimeoutError)
            logger.warning("no ranking of tools: they are found by their words", exc_info=None if late else error)
            ranked = [item.name for item, _ in self._library.search(text, k=len(self._library))]
        return [name for name in dict.fromkeys(ranked) if name in there][:k]

    async def _find(self, text: str, k: int) -> list[ToolSpecification]:
        return [self._by_name[name] for name in await self.rank(text, k=k) if name in self._by_name]

    def _head(self) -> list[str]:
        return [name for name in (FINISH, FIND_TOOLS) if name in self._builtin]

    def _arrange(self) -> None:
        """What is at the beginning stays there while it exists: a provider reads again only what comes after."""
        names = [*self._head(), *(name for name in self.chosen if self.there(name))]
        offered = tuple(self._by_name.get(name) or self._builtin[name].specification for name in names)
        if len(offered) != len(self.offered) or any(a is not b for a, b in zip(offered, self.offered, strict=True)):
            self.offered = offered

    # --- what there is

    def _decide(self, *, missing: Literal["refuse", "skip"], descriptions: bool) -> None:
        self._version = self._library.version
        everything = self._agent.all_tools
        bound = self._library.bind(self._agent, missing=missing, descriptions=descriptions, everything=everything)
        by_name, offered, aliases = bound.by_name, bound.offered, bound.aliases
        wanted = self._task.available_tools
        if wanted is not None:
            if missing == "refuse":
                _check_available(self._task, by_name, self._principal)
            by_name = {name: by_name[name] for name in wanted if name in by_name}
            offered = tuple(item for item in offered if item.name in by_name)
            aliases = {name: item for name, item in aliases.items() if item.name in by_name}
        if bound.restricted:
            offered = tuple(item for item in offered if _permitted(item, self._principal))
        self.permitted = offered
        self.narrowed = self._most is not None and len(offered) > self._most
        if self.narrowed and FIND_TOOLS not in self._builtin:
            self.before = tuple(item.name for item in self.offered if item.name not in self._builtin)
            self._builtin[FIND_TOOLS] = find_tools_tool(self._find)
        # In place: calls under way look their tools up in this very mapping.
        self.tools.clear()
        self.tools.update(aliases)
        self.tools.update(by_name)
        self.tools.update(self._builtin)
        if self.narrowed:
            self._by_name = {item.name: item for item in offered}
            self._arrange()
            return
        if self._builtin:
            offered = (*offered, *(item.specification for name, item in self._builtin.items() if name != FIND_TOOLS))
        self.offered = offered


def _permitted(item: ToolSpecification, principal: Principal | None) -> bool:
    return all(principal is not None and principal.may(permission) for permission in item.permissions)


def _check_available(task: TaskInput, tools: Mapping[str, AnyTool], principal: Principal | None) -> None:
    unknown = [name for name in task.available_tools or () if name not in tools]
    if unknown:
        near = nearest_names(unknown[0], [n for n, item in tools.items() if _permitted(item.specification, principal)])
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ConfigurationError(
            f"task {task.task_id!r}: available_tools names tools the agent does not have: "
            f"{', '.join(map(repr, unknown))}{hint}"
        )
