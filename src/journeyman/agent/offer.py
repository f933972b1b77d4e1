"""What a run may call and what its model is told of it, decided at every step and nowhere else.

A library changes while runs go on: tool servers come and go, settings are edited. So before every question to the
model the offer is brought up to date. It costs one comparison while the library stays as it is, and gives adapters the
same tuple as before, which they have encoded already. Where there are more tools than a model is told of, ``choosing``
says which. Below are the tools that the loop itself offers: ``finish`` ends a run, ``read_result`` reads what was
cut, ``find_tools`` finds tools that the model was not told of.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from journeyman.agent.agent import Agent
from journeyman.core.calls import Artifact, ToolContext
from journeyman.core.data import one_line
from journeyman.core.errors import ConfigurationError, ErrorCategory, ToolError
from journeyman.core.policy import Principal, RiskLevel
from journeyman.core.protocols import ToolRanker
from journeyman.core.runs import TaskInput
from journeyman.core.specification import FIND_TOOLS, FINISH, ToolSpecification
from journeyman.tools.library import ToolLibrary, nearest_names
from journeyman.tools.schema import FunctionSchema, function_schema
from journeyman.tools.tool import Tool

if TYPE_CHECKING:
    from journeyman.agent.state import RunState
    from journeyman.tools.output import Output

logger = logging.getLogger("journeyman.agent")

READ_RESULT = "read_result"
MOST_FOUND = 10
LONGEST_LINE = 160
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
        self.chosen: list[str] = []
        """Which, in the order in which they were chosen; some may not be there at the moment."""
        self.told, self.room = 0, 1
        """How many of them are there, and for how many there is room: the first of an offer are those of the loop."""
        self.before: tuple[str, ...] = ()
        """What the model was told of before there were too many tools."""
        self.seen_steps = 0
        """How many steps the choice has taken into account."""
        self.found: dict[str, int] = {}
        """At which iteration tools were found last, by ``find_tools`` or as a fallback."""
        self.fallbacks: set[str] = set()
        """Tools that failed for good."""
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

    def resume(self, state: RunState) -> None:
        """Go on with the choice that a run's facts tell of, as far as there is one."""
        if state.offer_known:
            self.chosen = list(state.offered)
        self.seen_steps, self.found, self.fallbacks = state.offered_at, dict(state.found), set(state.fallbacks)
        if self.narrowed:
            self._arrange()

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
            if self.narrowed:
                self._arrange()
            else:
                self.offered = (*self.offered, reader.specification)

    # --- where there are more than the model is told of

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
        chosen = frozenset(self.chosen)
        kept = {name: place for place, name in enumerate(filter(self.there, self.chosen))}
        wanted = {name: place for place, name in enumerate(dict.fromkeys(names))}
        new = [name for name in wanted if name not in chosen and self.there(name)]
        staying = [name for name in kept if name in used or name in wanted or name == READ_RESULT]
        again = [place for name, place in wanted.items() if name in kept]
        at_least = 0 if new and again and wanted[new[0]] > max(again) else 1
        new = new[: max(at_least, self.room - len(staying))]
        going = sorted(
            (name for name in kept if name != READ_RESULT),
            key=lambda name: (used.get(name, -1), found.get(name, -1), -wanted.get(name, kept[name])),
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
        there = self._by_name.keys() - left
        try:
            ranking = asyncio.ensure_future(self._ranker.rank(text, tools, k=k))
            # Nobody may be left to wait for it, and its vectors are of use to the next ranking.
            ranking.add_done_callback(lambda done: done.cancelled() or done.exception())
            done, _ = await asyncio.wait({ranking}, timeout=RANK_SECONDS)
            if not done:
                raise TimeoutError
            ranked: Sequence[str] = ranking.result()
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
        head = self._head()
        there = self._by_name | {name: tool.specification for name, tool in self._builtin.items()}
        offered = tuple([there[name] for name in (*head, *self.chosen) if name in there])
        self.told = len(offered) - len(head)
        if len(offered) != len(self.offered) or not all(map(is_, offered, self.offered)):
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
            self.room = max(1, (self._most or 0) - len(self._head()))
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


# --- the tools of the loop itself


_ALIKE: dict[str, Any] = {"risk": RiskLevel.REVERSIBLE, "read_only": True, "category": "journeyman"}
_described: dict[str, tuple[ToolSpecification, FunctionSchema]] = {}


def _builtin(name: str, function: Callable[..., Any], *, always_alike: bool = True) -> Tool[..., Any]:
    """The function as a tool. What is described alike in every run is worked out once."""
    if (described := _described.get(name)) is None:
        schema = function_schema(function, context_type=ToolContext)
        about, parameters = schema.documentation.description, schema.parameters
        made = ToolSpecification(name=name, description=about, parameters=parameters, returns=schema.returns, **_ALIKE)
        described = made, schema
        if always_alike:
            _described[name] = described
    specification, schema = described
    return Tool(specification=specification, function=function, schema=schema, repeatable=True, is_async=True)


def finish_tool() -> Tool[..., Any]:
    """How an agent with ``finish=True`` ends its run."""

    async def finish(
        answer: Annotated[str, Field(pattern=r"\S")],
        reasoning: str = "",
        confidence: Annotated[float, Field(ge=0, le=1)] | None = None,
    ) -> dict[str, Any]:
        """Give the final answer. Use when the task is done, or when it cannot be done: then say why.

        Args:
            answer: The answer for the user.
            reasoning: How the answer was found, in a sentence or two.
            confidence: How sure you are, from 0 to 1.
        """
        return {"answer": answer, "reasoning": reasoning, "confidence": confidence}

    return _builtin(FINISH, finish)


def output_tool(expected: Output) -> Tool[..., Any]:
    """How an agent with an ``output`` ends its run: the arguments are the answer."""

    async def finish() -> dict[str, Any]:
        return {"accepted": True}

    about = expected.schema.get("description")
    description = "Give the final answer, as these arguments. Use when the task is done."
    if isinstance(about, str):
        description = f"{about} {description}"
    specification = ToolSpecification(name=FINISH, description=description, parameters=expected.parameters, **_ALIKE)
    return Tool(specification=specification, function=finish, schema=expected, repeatable=True, is_async=True)


Read = Callable[[Artifact, int, int], Awaitable[str | None]]
"""Reads so many characters of an artifact from an offset on."""


def read_result_tool(texts: dict[str, str | Artifact], *, limit: int, read: Read) -> Tool[..., Any]:
    """Reads on in results that were too long for one message; ``texts`` maps handles to whole results."""
    most = limit - 100  # room for the line that says how to go on

    async def read_result(handle: str, offset: Annotated[int, Field(ge=0)] = 0, length: int = most) -> str:
        """Read more of a long result. Use when a result was cut and the part that was left out matters.

        Args:
            handle: The handle named where the result was cut.
            offset: The first character to read.
            length: How many characters to read.
        """
        result = texts.get(handle)
        if result is None:
            known = ", ".join(sorted(texts)) or "none"
            raise ToolError(
                "UNKNOWN_HANDLE",
                f"no cut result has the handle {handle!r} (known: {known})",
                category=ErrorCategory.INVALID_INPUT,
                recover_action="Use a handle named in this conversation, or call the tool again",
            )
        length = max(1, min(length, most))
        if isinstance(result, str):
            part, whole = result[offset : offset + length], len(result)
        else:
            kept, whole = await read(result, offset, length), result.chars
            if kept is None:
                raise ToolError(
                    "RESULT_GONE",
                    f"the rest of the result {handle!r} is not kept any more",
                    recover_action="Call the tool again if the rest matters",
                )
            part = kept
        end = offset + len(part)
        go_on = f"go on with offset={end}" if end < whole else "this is the end"
        # Text and not JSON: escaping would make it longer than the limit, and it would be cut again.
        return f"{part}\n[characters {offset:,} to {end:,} of {whole:,}; {go_on}]"

    return _builtin(READ_RESULT, read_result, always_alike=False)


def without_more(read: str) -> str:
    """What ``read_result`` once gave, when there is nothing left to go on with."""
    return re.sub(r"go on with offset=\d+\]\Z", "the rest is not available any more]", read)


Find = Callable[[str, int], Awaitable[Sequence[ToolSpecification]]]
"""The tools that fit a text best, at most so many."""


def find_tools_tool(find: Find) -> Tool[..., Any]:
    """Finds tools that the model was not told of; it is told of them from the next step on."""

    async def find_tools(
        query: Annotated[str, Field(pattern=r"\S")], k: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 5
    ) -> dict[str, Any]:
        """Find tools by what they do. There are more tools than you are told of.

        Use when no tool that you have fits what is to be done next. The tools it finds can be called afterwards.

        Args:
            query: What a tool is needed for, in a few words, e.g. "send an invoice by mail".
            k: How many tools to find at most.
        """
        lines = {
            item.name_for_models: one_line(item.description.strip().partition("\n")[0], most=LONGEST_LINE)
            for item in await find(query, k)
        }
        if not lines:
            return {"found": {}, "hint": "nothing fits; try other words, or go on without such a tool"}
        return {"found": lines}

    return _builtin(FIND_TOOLS, find_tools)
