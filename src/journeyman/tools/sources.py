"""Where a library's tools come from besides the program, and how a library keeps up with them.

A source is opened, listed, watched and closed. Each is followed by a task of its own while the library is open.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ConfigurationError, JourneymanError
from journeyman.core.policy import check_permissions
from journeyman.core.specification import ToolSpecification
from journeyman.tools.tool import ForeignSchema, Tool, why_not_registrable

logger = logging.getLogger("journeyman.tools")

Update: TypeAlias = Callable[[Mapping[str, Tool[..., Any]], Iterable[str]], None]
"""Puts tools into a library and takes names out of it, as one change."""


CONTEXT = "journeyman:context"
"""Under which a call's context is handed over to what carries it out elsewhere, beside its arguments."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a source that could not be opened is tried again: each time twice as long."""


@dataclass(frozen=True, slots=True)
class UnusableTool:
    """Stands in a source's list for what it has and cannot offer; it becomes a problem of the library."""

    name: str
    why: str


class ToolSource(Protocol):
    """Somewhere tools come from: a server, a folder, a list of import paths.

    A library opens it, lists it, and lists it again whenever ``watch()`` yields; it waits as long as the source takes,
    so a source keeps to time limits of its own. Before ``close()`` the generator of ``watch()`` is closed.
    """

    @property
    def name(self) -> str:
        """What errors, warnings and problems call it; unique within a library."""

    async def open(self) -> None:
        """Connect. What fails here leaves nothing open, and raises an error that says what to change."""

    async def list(self) -> Sequence[Tool[..., Any] | UnusableTool]:
        """The tools there are now. One that has not changed is the same object as before; another one replaces it."""

    def watch(self) -> AsyncIterator[None]:
        """An asynchronous generator that yields when the tools may have changed since they were last listed.

        One that ends says that nothing will change any more.
        """

    async def close(self) -> None:
        """Let go of everything; a second time does nothing."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


@dataclass(kw_only=True, eq=False, repr=False)
class ServedTools:
    """What sources have in common whose tools somebody else carries out. Theirs are ``name.tool``."""

    name: str
    timeout_seconds: float = 30.0
    cache_seconds: float | None = None
    category: str | None = None
    permissions: Iterable[str] = ()
    only: Iterable[str] | None = None
    kind: ClassVar[str]
    elsewhere: ClassVar[str]
    example: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise self._wrong(f"a name has 1–32 letters, digits, '_' and '-', e.g. {self.example!r}")
        if not 1 <= self.timeout_seconds <= 300:
            raise self._wrong(f"timeout_seconds must be from 1 to 300, got {self.timeout_seconds:g}")
        self.only = None if self.only is None else frozenset(self.only)
        self.declared: dict[str, Any] = {"timeout_seconds": float(self.timeout_seconds)}
        """What stands in every specification."""
        self.declared |= {"category": self.category, "permissions": check_permissions(self.permissions)}

    def _wrong(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"{self.kind} {self.name!r}: {why}")

    def made_tool(
        self, specification: ToolSpecification, function: Any, schema: ForeignSchema, *, cached: bool, retries: int = 0
    ) -> Tool[..., Any]:
        """A tool whose function is asynchronous, and takes the call's context beside its arguments."""
        schema.context_parameter = CONTEXT
        return Tool(
            specification=specification,
            function=function,
            schema=schema,
            cache_seconds=self.cache_seconds if cached else None,
            retries=retries,
            is_async=True,
            runs_elsewhere=f"{self.elsewhere} {self.name!r}",
        )


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """What is wrong with a source of an open library, or with one of its tools."""

    source: str
    message: str
    tool: str | None = None


@dataclass(eq=False, slots=True)
class _Followed:
    """A source, what it listed last, and what of that the library has taken."""

    source: ToolSource
    opened: bool = False
    listed: tuple[Any, ...] = ()
    taken: dict[str, Tool[..., Any]] = field(default_factory=dict)
    refused: list[SourceProblem] = field(default_factory=list)
    failure: SourceProblem | None = None
    task: asyncio.Task[None] | None = None


class FollowedSources:
    """All sources of one library: opened together, followed one by one.

    The first to bring a name keeps it, be it the program or a source; whoever comes later is refused until the name is
    free again. Otherwise an approval or a grant could cover a tool that nobody has looked at.

    Where ``tolerant``, one that cannot be opened holds up neither the others nor whoever opens them: it is a problem,
    and tried again.
    """

    def __init__(
        self, sources: Iterable[ToolSource], *, taken: Callable[[str], bool], update: Update, tolerant: bool = False
    ) -> None:
        self._followed = [_Followed(source) for source in sources]
        names = [each.source.name for each in self._followed]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"sources of a library need different names; more than once: {', '.join(twice)}")
        self._taken, self._update, self._tolerant = taken, update, tolerant
        self._owners: dict[str, _Followed] = {}
        self._openings = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        return self._openings > 0

    async def open(self) -> None:
        """Open every source, or none: then the error names each that failed, and the others are closed again."""
        async with self._lock_of_this_loop():
            if not self._openings:
                await self._open()
            self._openings += 1

    async def close(self) -> None:
        """Undo one ``open()``; the last one stops following, takes the tools away and closes the sources."""
        async with self._lock_of_this_loop():
            self._openings -= 1 if self._openings else 0
            if not self._openings:
                await self._close()

    async def exchange(
        self, added: Sequence[ToolSource], removed: Sequence[ToolSource], and_then: Callable[[], None]
    ) -> None:
        """Sources for others. Nobody can see a moment in between: the change itself waits for nothing."""
        async with self._lock_of_this_loop():
            new = [_Followed(source) for source in added]
            if self._openings:
                try:
                    await self._opened(new)
                except BaseException:
                    await _closed([each.source for each in new if each.opened])
                    raise
            gone = [each for each in self._followed if each.source in removed]
            self._followed = [each for each in self._followed if each not in gone] + new
            names = [name for name, owner in self._owners.items() if owner in gone]
            for name in names:
                del self._owners[name]
            if names:
                self._update({}, names)
            if self._openings:
                self._follow_all(new)
            self.retry_refused()
            and_then()
            await _unfollowed(gone)
            await _closed([each.source for each in gone if each.opened])

    def problems(self) -> list[SourceProblem]:
        """What is wrong now, source by source."""
        return [problem for each in self._followed for problem in (each.failure, *each.refused) if problem]

    def release(self, name: str) -> None:
        """The program has registered or unregistered this name itself: it no longer belongs to a source."""
        self._owners.pop(name, None)

    def retry_refused(self) -> None:
        """A name has become free: somebody may have waited for it."""
        for each in self._followed:
            if each.refused:
                self._apply(each)

    # --- opening and closing

    def _lock_of_this_loop(self) -> asyncio.Lock:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._openings and self._loop is not None and not self._loop.is_closed():
                raise ConfigurationError("this library is open in another event loop; close it there first")
            # What was opened in a loop that has ended went with it.
            self._forget()
            self._openings = 0
            self._loop, self._lock = loop, asyncio.Lock()
        return self._lock

    async def _open(self) -> None:
        try:
            await self._opened(self._followed)
        except BaseException:
            await self._close()
            raise
        self._follow_all(self._followed)

    async def _opened(self, followed: Sequence[_Followed]) -> None:
        outcomes = await asyncio.gather(*map(_open_and_list, followed), return_exceptions=True)
        failed = [
            (each.source.name, outcome)
            for each, outcome in zip(followed, outcomes, strict=True)
            if isinstance(outcome, BaseException)
        ]
        if self._tolerant and all(isinstance(why, Exception) for _, why in failed):
            for each, outcome in zip(followed, outcomes, strict=True):
                if outcome is not None:
                    _note_failure(each, outcome)
        elif failed:
            lines = [f"the source of tools {name!r} cannot be opened: {_error_text(why)}" for name, why in failed]
            raise ConfigurationError("\n".join(lines)) from failed[0][1]

    def _follow_all(self, followed: Sequence[_Followed]) -> None:
        for each in followed:
            self._apply(each)
            each.task = asyncio.create_task(self._follow(each), name=f"tools of {each.source.name}")

    async def _close(self) -> None:
        await _unfollowed(self._followed)
        opened = [each.source for each in self._followed if each.opened]
        self._forget()
        await _closed(opened)

    def _forget(self) -> None:
        if self._owners:
            self._update({}, list(self._owners))
            self._owners.clear()
        self._followed = [_Followed(each.source) for each in self._followed]

    # --- following

    async def _follow(self, each: _Followed) -> None:
        changes: Any = None
        pause = FIRST_PAUSE
        while not each.opened:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            try:
                await _open_and_list(each)
            except Exception as error:
                _note_failure(each, error)
            else:
                each.failure = None
                self._apply(each)
        try:
            changes = each.source.watch()
            async for _ in changes:
                await asyncio.sleep(0)  # one that never waits would stall everybody
                await self._refresh(each)
        except Exception as error:  # a source's code can raise anything
            _note_failure(each, error, "is no longer watched", ", so its tools stay as they are")
        finally:
            if (aclose := getattr(changes, "aclose", None)) is not None:
                await aclose()

    async def _refresh(self, each: _Followed) -> None:
        try:
            each.listed = tuple(await each.source.list())
        except Exception as error:
            _note_failure(each, error, "cannot be listed", ", so its last known tools are kept")
        else:
            each.failure = None
            self._apply(each)

    def _apply(self, each: _Followed) -> None:
        """Bring the library up to what a source has listed."""
        wanted: dict[str, Tool[..., Any]] = {}
        refused: list[SourceProblem] = []
        for item in each.listed:
            if (why := self._refusal(each, item, wanted)) is None:
                wanted[item.name] = item
            else:
                name = item.name if isinstance(item, Tool | UnusableTool) else None
                refused.append(SourceProblem(each.source.name, why, name))
        gone = [name for name in each.taken if name not in wanted and self._owners.get(name) is each]
        # A tool that is still the same object is left alone: the program may have deprecated or unregistered it.
        changed = {name: item for name, item in wanted.items() if each.taken.get(name) is not item}
        for item in changed.values():
            item.stamp_origin(each.source.name)
        each.taken = wanted
        for name in gone:
            del self._owners[name]
        self._owners |= dict.fromkeys(changed, each)
        if changed or gone:
            self._update(changed, gone)
        for problem in refused:
            if problem not in each.refused:
                _warn("a tool of a source was refused", each.source.name, tool=problem.tool)
        each.refused = refused
        if gone:
            self.retry_refused()

    def _refusal(self, each: _Followed, item: Any, wanted: Mapping[str, Any]) -> str | None:
        if isinstance(item, UnusableTool):
            return item.why
        if not isinstance(item, Tool):
            return f"lists {type(item).__name__}, which is no tool"
        if item.name in wanted:
            return f"lists {item.name!r} more than once"
        owner = self._owners.get(item.name)
        if not self._taken(item.name) or owner is each or each.taken.get(item.name) is item:
            return why_not_registrable(item)
        by = "the program" if owner is None else f"the source {owner.source.name!r}"
        return f"lists {item.name!r}, a name that {by} has taken"


async def _open_and_list(each: _Followed) -> None:
    await each.source.open()
    try:
        each.listed = tuple(await each.source.list())
    except BaseException:
        await _closed([each.source])
        raise
    each.opened = True


def _note_failure(each: _Followed, error: BaseException, what: str = "cannot be opened", then: str = "") -> None:
    problem = SourceProblem(each.source.name, f"{what}{then}: {_error_text(error)}")
    if each.failure != problem:
        _warn(f"a source of tools {what}", each.source.name, error=type(error).__name__)
    each.failure = problem


async def _unfollowed(followed: Sequence[_Followed]) -> None:
    tasks = [each.task for each in followed if each.task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _closed(sources: Sequence[ToolSource]) -> None:
    outcomes = await asyncio.gather(*(source.close() for source in sources), return_exceptions=True)
    for source, outcome in zip(sources, outcomes, strict=True):
        if isinstance(outcome, Exception):
            _warn("a source of tools could not be closed", source.name, error=type(outcome).__name__)


def _error_text(error: BaseException) -> str:
    return str(error) if isinstance(error, JourneymanError) else f"{type(error).__name__}: {error}"


def _warn(message: str, source: str, **fields: Any) -> None:
    # Metadata only: what a server says in an error may hold anything.
    logger.warning(message, extra={LOG_FIELDS: {"source": source, **fields}})
