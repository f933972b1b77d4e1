"""What a run may call and what its model is told of it, decided at every step and nowhere else.

A library changes while runs go on: tool servers come and go, settings are edited. So before every question to the
model the offer is brought up to date. It costs one comparison while the library stays as it is, and gives adapters the
same tuple as before, which they have encoded already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from journeyman.agent.agent import Agent
from journeyman.agent.builtin import FINISH, READ_RESULT, Read, finish_tool, output_tool, read_result_tool
from journeyman.core.calls import Artifact
from journeyman.core.errors import ConfigurationError
from journeyman.core.principals import Principal
from journeyman.core.runs import TaskInput
from journeyman.core.specification import ToolSpecification
from journeyman.tools.library import ToolLibrary, nearest_names
from journeyman.tools.tool import Tool

AnyTool = Tool[..., Any]
ALIASES = "aliases"
"""In a tool's metadata: other names under which it can be called."""


class Offer:
    """The agent's tools that the library has, narrowed by the task, the principal's permissions and their number.

    ``tools`` is what a call may name: everything that is there, so that a call of a tool which the model was not told
    of still gets its proper answer. ``offered`` is what the model is told: enabled, permitted for the principal, and
    when there are more than ``most``, those that fit the task best, with everything that was used already.
    """

    def __init__(
        self, agent: Agent, library: ToolLibrary, task: TaskInput, principal: Principal | None, *, most: int | None
    ) -> None:
        self._agent = agent
        self._library = library
        self._task = task
        self._principal = principal
        self._most = most
        self._version = -1
        self._builtin: dict[str, AnyTool] = {}
        self.tools: dict[str, AnyTool] = {}
        self.offered: tuple[ToolSpecification, ...] = ()
        if agent.output is not None:
            self._builtin[FINISH] = output_tool(agent.expected)
        elif agent.finish:
            self._builtin[FINISH] = finish_tool()

    def begin(self, *, missing: Literal["refuse", "skip"] = "refuse", descriptions: bool = True) -> None:
        """Decide for the first time. A new run is refused where a tool is missing; a resumed one goes on without it.

        Raises BindingError, or ConfigurationError where the task names a tool that the agent does not have.
        """
        self._decide((), missing=missing, descriptions=descriptions)

    def refresh(self, used: Iterable[str]) -> None:
        """Take over what has changed in the library since the last step; ``used`` are tools called so far."""
        if self._version != self._library.version:
            self._decide(used, missing="skip", descriptions=False)

    def limit_to(self, most: int | None) -> None:
        """Tell the model of no more than so many tools, from the next step on."""
        if most != self._most:
            self._most, self._version = most, -1

    def add_reader(self, cut_results: dict[str, str | Artifact], *, limit: int, read: Read) -> None:
        """Offer ``read_result`` from here on: a result was cut."""
        if READ_RESULT not in self._builtin:
            reader = self._builtin[READ_RESULT] = read_result_tool(cut_results, limit=limit, read=read)
            self.tools[READ_RESULT] = reader
            self.offered = (*self.offered, reader.specification)

    def _decide(self, used: Iterable[str], *, missing: Literal["refuse", "skip"], descriptions: bool) -> None:
        self._version = self._library.version
        bound = self._library.bind(self._agent, missing=missing, descriptions=descriptions)
        by_name, offered = bound.by_name, bound.offered
        if self._agent.all_tools:
            by_name = {**by_name, **{item.name: item for item in self._library if item.name not in by_name}}
            offered = tuple(item.specification for item in by_name.values() if item.specification.enabled)
        wanted = self._task.available_tools
        if wanted is not None:
            if missing == "refuse":
                _check_available(self._task, by_name)
            by_name = {name: by_name[name] for name in wanted if name in by_name}
            offered = tuple(item for item in offered if item.name in by_name)
        if any(item.permissions for item in offered):
            offered = tuple(item for item in offered if _permitted(item, self._principal))
        if self._most is not None and len(offered) > self._most:
            offered = self._best(offered, self._most, set(used))
        # In place: calls under way look their tools up in this very mapping.
        self.tools.clear()
        for item in by_name.values():
            # Under these names a model may call it, and is not told of them.
            if isinstance(aliases := item.specification.metadata.get(ALIASES), list):
                self.tools.update(dict.fromkeys(map(str, aliases), item))
        self.tools.update(by_name)
        self.tools.update(self._builtin)
        if self._builtin:
            offered = (*offered, *(item.specification for item in self._builtin.values()))
        self.offered = offered

    def _best(self, offered: tuple[ToolSpecification, ...], most: int, used: set[str]) -> tuple[ToolSpecification, ...]:
        """Those that were used, then those nearest to the task, then as they come; in the order they had."""
        there = {item.name for item in offered}
        ranked = [item.name for item, _ in self._library.search(self._task.description, k=len(self._library))]
        chosen = [name for name in there if name in used]
        chosen += [name for name in ranked if name in there and name not in used]
        chosen += [item.name for item in offered]
        kept = set(list(dict.fromkeys(chosen))[:most])
        return tuple(item for item in offered if item.name in kept)


def _permitted(item: ToolSpecification, principal: Principal | None) -> bool:
    return all(principal is not None and principal.may(permission) for permission in item.permissions)


def _check_available(task: TaskInput, tools: Mapping[str, AnyTool]) -> None:
    unknown = [name for name in task.available_tools or () if name not in tools]
    if unknown:
        near = nearest_names(unknown[0], tools)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise ConfigurationError(
            f"task {task.task_id!r}: available_tools names tools the agent does not have: "
            f"{', '.join(map(repr, unknown))}{hint}"
        )
