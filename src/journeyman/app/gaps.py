"""``app.gaps``: what no tool can do, by demand. Runs report it by themselves; how it is told is the room ``choosing``.

And a gap as something to begin with: a tool in gram notation, or a Python module with a test that runs. The texts come
from requests of anybody, so they are quoted, shortened and rid of tokens before they are code.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

from journeyman.app.finding import find_gap
from journeyman.core.data import one_line
from journeyman.core.errors import ConfigurationError
from journeyman.core.gaps import Gap, ToolGapReport
from journeyman.core.policy import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.protocols import Clock, Model
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.core.words import packaged_text
from journeyman.sensitive.tokens import redacted
from journeyman.stores.store import SqlStore
from journeyman.tools.library import ToolLibrary


class Gaps:
    """Requests that the tools of a library cannot serve."""

    def __init__(self, store: SqlStore, library: ToolLibrary, *, clock: Clock) -> None:
        self._store = store
        self._library = library
        self._clock = clock

    async def detect(
        self,
        text: str,
        *,
        confidence: float | None = None,
        model: Model | None = None,
        run_id: str | None = None,
        principal: Principal | None = None,
    ) -> ToolGapReport | None:
        """What is missing for a task, which is then kept; None when the tools at hand seem to do.

        ``confidence`` is how sure a model was, where one was asked; a ``model`` is asked here, and nothing that it
        wants to call is run. ``run_id`` is the run in which that was, on behalf of ``principal``.
        """
        report = await find_gap(text, self._library, confidence, model=model)
        if report is not None:
            principal_id = None if principal is None else principal.id
            await self._store.gaps.add(report, now=self._clock.time(), run_id=run_id, principal_id=principal_id)
        return report

    detect_missing_tools = detect

    async def demand(self, **only: Any) -> Sequence[Gap]:
        """What is missing, each gap once, those that most people asked for first. ``only`` is for the store."""
        return await self._store.gaps.demand(**only)

    async def get(self, key: str, *, principal_id: PrincipalFilter = ANY_PRINCIPAL) -> Gap | None:
        """One gap, dismissed or not; counted as far as the principal may see."""
        gaps = await self._store.gaps.demand(principal_id=principal_id, dismissed=True, key=key, limit=1)
        return gaps[0] if gaps else None

    async def dismiss(self, key: str, *, by: str | None = None) -> None:
        """Leave a gap out of ``demand`` from now on. Raises ConfigurationError where there is none with this key."""
        if not await self._store.gaps.dismiss(key, by=by, now=self._clock.time()):
            raise ConfigurationError(f"there is no gap {key!r}; 'journeyman gaps list' shows their ids")


NAME_CHARS = 60
EXAMPLE_CHARS = 200
UNNAMED = "new_tool"


def tool_name(missing: str) -> str:
    """A name for the tool, from what is missing.

    >>> tool_name("retrieve stock portfolio performance")
    'retrieve_stock_portfolio_performance'
    """
    words = re.findall(r"[a-z0-9]+", missing.lower()[: 4 * NAME_CHARS])
    name = "_".join(words)[:NAME_CHARS].strip("_")
    if not name or not name[0].isalpha():
        name = f"{UNNAMED}_{name}".strip("_")
    return f"{name}_tool" if keyword.iskeyword(name) or name in RESERVED_NAMES else name


def as_specification(gap: Gap) -> ToolSpecification:
    """What the tool could look like to a model."""
    return ToolSpecification(
        name=tool_name(gap.missing),
        description=f"{_described(gap)} Use when the user asks for this, for example: {_example(gap)}",
        parameters={
            "type": "object",
            "properties": {"request": {"type": "string", "description": "What is asked for, in words."}},
            "required": ["request"],
        },
        returns={"type": "string"},
    )


def as_gram(gap: Gap) -> str:
    """A document with the tool, for agents to be written with and somebody to bind it."""
    from journeyman.gram import dump_tools

    return dump_tools([as_specification(gap)])


def as_python(gap: Gap) -> dict[str, str]:
    """A module with the tool, which says that it is not implemented, and a test that passes: two files by name."""
    name = tool_name(gap.missing)
    texts = {"name": name, "description": _docstring(_described(gap)), "example": _docstring(_example(gap))}
    test = _template("gap_test").format(name=name, request=_example(gap))
    return {f"{name}.py": _template("gap_tool").format(**texts), f"test_{name}.py": test}


def _template(name: str) -> str:
    return packaged_text("journeyman.app", f"templates/{name}.py.txt")


def _described(gap: Gap) -> str:
    said = _plain(gap.missing)
    return f"{said[:1].upper()}{said[1:]}."


def _example(gap: Gap) -> str:
    return _plain(gap.report.attempted_task)


def _plain(text: str) -> str:
    """One line without tokens, and without characters that nobody sees."""
    return one_line(redacted(text[: 4 * EXAMPLE_CHARS]), most=EXAMPLE_CHARS)


def _docstring(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "'")
