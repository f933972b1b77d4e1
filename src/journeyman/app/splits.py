"""Live traffic divided between two or more libraries: by share, sticky for a session, with a switch to end it.

The first arm is the one in use today; when a split is stopped everything new goes there. Which arm a run belongs to is
kept with the run. Changes are rows of the audit log, so that they outlive the process and say who made them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from journeyman.core.errors import ConfigurationError
from journeyman.core.protocols import Clock
from journeyman.core.runs import TaskInput
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.stores.audit import SqlAudit

KEY = "experiment"
"""Where a task's metadata says which split and arm it belongs to."""
CHANGED = "split_changed"
LOOK_SECONDS = 2.0
"""How old the knowledge of other processes' changes may be."""
_PAGE = 1_000


@dataclass(slots=True)
class Split:
    """One live comparison. ``shares`` are percentages and add up to 100."""

    name: str
    arms: Mapping[str, ToolLibrary]
    shares: dict[str, float] = field(default_factory=dict)
    stopped: bool = False
    _seen: int = 0
    _looked_at: float | None = None

    def __post_init__(self) -> None:
        if len(self.arms) < 2:
            raise ConfigurationError(f"split {self.name!r} needs at least two arms, got {list(self.arms)}")
        self.shares = self._checked(self.shares or dict.fromkeys(self.arms, 100 / len(self.arms)))

    @property
    def control(self) -> str:
        """The arm that gets everything when the split is stopped."""
        return next(iter(self.arms))

    def arm_of(self, unit: str) -> str:
        """Which arm a session (or whoever else stays with one arm) belongs to now."""
        if self.stopped:
            return self.control
        from journeyman.experiments.statistics import assign

        return assign(unit, self.shares, experiment=self.name)

    def _checked(self, shares: Mapping[str, float]) -> dict[str, float]:
        if set(shares) != set(self.arms):
            raise ConfigurationError(f"split {self.name!r} has the arms {list(self.arms)}, not {list(shares)}")
        if any(share < 0 for share in shares.values()) or abs(sum(shares.values()) - 100) > 0.01:
            raise ConfigurationError(f"shares are percentages that add up to 100, got {dict(shares)}")
        # In the order of the arms: raising one arm's share then moves sessions only into it.
        return {arm: float(shares[arm]) for arm in self.arms}

    # --- changes, here and elsewhere

    async def change(
        self,
        audit: SqlAudit,
        *,
        by: str,
        now: float,
        stopped: bool | None = None,
        shares: Mapping[str, float] | None = None,
    ) -> None:
        """Stop the split, take it up again, or shift its shares. Runs under way stay with their arm."""
        details: dict[str, Any] = {
            "stopped": self.stopped if stopped is None else stopped,
            "shares": self.shares if shares is None else self._checked(shares),
        }
        await audit.append(CHANGED, actor=by, run_id=None, subject=self.name, details=details, now=now)
        self._apply(details)

    async def look(self, audit: SqlAudit, clock: Clock) -> None:
        """Take over what other processes, or an earlier one, have changed."""
        now = clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        while rows := await audit.list(after=self._seen, limit=_PAGE):
            for row in rows:
                if row.kind == CHANGED and row.subject == self.name:
                    self._apply(row.details)
            self._seen = rows[-1].seq

    def _apply(self, details: Mapping[str, Any]) -> None:
        self.stopped = bool(details["stopped"])
        if set(details["shares"]) == set(self.arms):  # else it was written when the split had other arms
            self.shares = self._checked(details["shares"])

    # --- runs

    def stamp(self, task: TaskInput) -> TaskInput:
        """The task with its arm in its metadata. Outside a session each task is assigned for itself."""
        unit = task.session_id or task.task_id
        mark = {"name": self.name, "arm": self.arm_of(unit)}
        return task.model_copy(update={"metadata": {**task.metadata, KEY: mark}})

    def library_of(self, task: TaskInput) -> ToolLibrary | None:
        """The library of the arm that a task was given; None when it belongs to none of this split's."""
        mark = task.metadata.get(KEY)
        if not isinstance(mark, dict) or mark.get("name") != self.name:
            return None
        return self.arms.get(str(mark.get("arm")))
