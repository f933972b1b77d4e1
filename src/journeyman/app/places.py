"""Who may begin: how many runs are worked on here at once, each principal's share of that, and who waits for a place.

Due runs come from the store in an order in which principals take turns. What finds no place is kept in that order and
begun when a place is free, without another look at the store; the next regular look replaces it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

NOT_KNOWN = "?"
"""In place of the principal of a run that is being loaded."""
MOST_WAITING = 1_000
"""Enough for a while: to look at all that is due each time would take ever longer."""


class Places:
    """Counts; begins nothing itself."""

    def __init__(self, places: int) -> None:
        self.count = places
        """Runs worked on here at once."""
        self._taken: dict[str, str | None] = {}
        self._by_principal: Counter[str | None] = Counter()
        """The same counted, since everybody who waits is looked at whenever a place is free."""
        self._waiting: dict[str, str | None] = {}

    @property
    def share(self) -> int:
        """How many places the runs of one principal may take: some are left to whoever comes next."""
        return self.count - self.count // 4

    @property
    def crowded(self) -> bool:
        return len(self._taken) >= self.share

    @property
    def waited_for(self) -> bool:
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Whether there is enough to go on with until the next look."""
        return len(self._waiting) >= MOST_WAITING

    def take(self, run_id: str, principal_id: str | None) -> None:
        self.leave(run_id)
        self._taken[run_id] = principal_id
        self._by_principal[principal_id] += 1

    def leave(self, run_id: str) -> None:
        if run_id in self._taken:
            self._by_principal[self._taken.pop(run_id)] -= 1

    def free_for(self, principal_id: str | None) -> bool:
        """Whether there is a place for a run of this principal. Who has none is not held to a share."""
        if not self.crowded:
            return True
        if len(self._taken) >= self.count:
            return False
        if principal_id is None:
            return True
        return self._by_principal[principal_id] + self._by_principal[NOT_KNOWN] < self.share

    def wait(self, run_id: str, principal_id: str | None) -> None:
        self._waiting[run_id] = principal_id

    def forget_waiting(self) -> None:
        self._waiting.clear()

    def next(self) -> Iterator[tuple[str, str | None]]:
        """Runs that have waited and may be begun now, one after another as places are taken."""
        while self._waiting and len(self._taken) < self.count:
            found = next((item for item in self._waiting.items() if self.free_for(item[1])), None)
            if found is None:
                return
            del self._waiting[found[0]]
            yield found
