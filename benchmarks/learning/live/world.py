"""A world of the live measurement: tools over a state of its own, and what is asked of it.

Templates alternate between the half that forms are tuned on (``dev``) and the half that is reported (``test``).
Instances below ``PRACTICE`` are what memories are made from; the others are asked.
"""

import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from journeyman import ToolLibrary
from journeyman.tools.library import AnyTool

PRACTICE = 6
ASKED = 10
SPLITS = ("dev", "test", "all")

Call = tuple[str, dict[str, Any]]
Made = tuple[str, list[Call]]


@dataclass(frozen=True)
class World:
    """Tools, the state they change, and templates of requests with the calls that serve them."""

    name: str
    instruction: str
    tools: Sequence[AnyTool]
    functions: Mapping[str, Callable[..., Awaitable[Any]]]
    place: ContextVar[Any]
    """Holds the state of the run that this task carries out."""
    furnished: Callable[[str], Any]
    draw: Callable[[str, tuple[str, ...]], Any]
    """By seed: what a template takes rows and wordings from."""
    templates: Mapping[str, Callable[[Any], Made]]
    wordings: Mapping[str, tuple[str, ...]]
    """By template: how it is asked in words that nobody used in practice."""

    @cached_property
    def library(self) -> ToolLibrary:
        return ToolLibrary(self.tools)

    @cached_property
    def reads(self) -> frozenset[str]:
        return frozenset(item.name for item in self.tools if item.specification.read_only)

    def split(self, name: str) -> list[str]:
        named = list(self.templates)
        return {"dev": named[::2], "test": named[1::2], "all": named}[name]

    def task(self, template: str, instance: int, *, reworded: bool = False, seed: int = 0) -> "Task":
        key = f"{template}#{instance}" if not seed else f"{template}#{instance}@{seed}"
        request, calls = self.templates[template](self.draw(key, self.wordings[template] if reworded else ()))
        return Task(self, template, instance, request, tuple(calls), key)

    def practice(self, split: str, *, seed: int = 0) -> list["Task"]:
        """What memories are made from."""
        return [self.task(name, number, seed=seed) for name in self.split(split) for number in range(PRACTICE)]

    def asked(self, split: str, most: int | None = None, *, reworded: bool = False, seed: int = 0) -> list["Task"]:
        """What is asked; fewer are spread over the templates. ``reworded``: as nobody asked it in practice."""
        numbers, names = range(PRACTICE, PRACTICE + ASKED), self.split(split)
        return [self.task(name, at, reworded=reworded, seed=seed) for at in numbers for name in names][:most]

    def every(self) -> Iterator["Task"]:
        return (self.task(name, number) for name in self.templates for number in range(PRACTICE + ASKED))


@dataclass(frozen=True)
class Task:
    """One request with a state of its own and what that should be in the end."""

    world: World = field(repr=False)
    template: str
    instance: int
    request: str
    calls: tuple[Call, ...]
    id: str

    def furnished(self) -> Any:
        """The state before, in the place of the run that comes next."""
        place = self.world.furnished(self.id)
        self.world.place.set(place)
        return place

    async def wanted(self) -> dict[str, Any]:
        """The state that the right calls lead to."""
        place = self.furnished()
        for name, arguments in self.calls:
            await self.world.functions[name](**copy.deepcopy(arguments))
        return dict(place.state)
