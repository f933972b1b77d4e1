"""What changed between two versions of a playbook, whatever keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.errors import ConfigurationError
from journeyman.core.playbook import PlaybookState, StrategyState, playbook_diff
from journeyman.learning import Playbook, PlaybookBullet, ToolCallingStrategy
from journeyman.stores import FilePlaybooks

BULLET = PlaybookBullet(id="note", content="Say please.", section="Observations")


def strategy(name: str, **fields: object) -> ToolCallingStrategy:
    given = {"content": f"Do {name}.", "tool_sequence": ("look", name), "state": "active", **fields}
    return ToolCallingStrategy(id=name, **given)


@pytest.mark.parametrize("in_files", [False, True])
async def test_bullets_added_changed_and_removed(in_files: bool, tmp_path: Path) -> None:
    playbook = Playbook("shop", store=FilePlaybooks(tmp_path) if in_files else None, embedder=None)
    await playbook.put([strategy("send"), strategy("stay"), BULLET])
    await playbook.put([strategy("find")])
    await playbook.set_state("send", StrategyState.QUARANTINED, reason="wrong")

    found = await playbook.diff(1)
    assert (found.domain, found.since, found.to) == ("shop", 1, 3)
    added, changed = found.bullets
    assert (added.kind, added.id, added.title) == ("added", "find", "look → find")
    assert ("content", None, "Do find.") in [(item.field, item.before, item.after) for item in added.fields]
    assert (changed.kind, changed.title) == ("changed", "look → send")
    told = {item.field: (item.before, item.after) for item in changed.fields}
    assert told == {"state": ("active", "quarantined"), "state_reason": ("", "wrong")}

    assert [item.kind for item in (await playbook.diff(2, 1)).bullets] == ["removed"]  # the way back
    await playbook.rollback(to=1)
    assert (await playbook.diff(1)).bullets == ()
    assert {item.title for item in (await playbook.diff(0, 1)).bullets} == {"look → send", "look → stay", "Say please."}
    with pytest.raises(ConfigurationError, match="no version 9"):
        await playbook.diff(1, 9)


_states = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)).map(
    lambda counts: PlaybookState(
        bullets=tuple(PlaybookBullet(id=key, content="Do.", helpful_count=count) for key, count in counts.items())
    )
)


@given(_states, _states)
def test_the_way_back_is_the_same_turned_round(one: PlaybookState, other: PlaybookState) -> None:
    there, back = playbook_diff("x", one, other).bullets, playbook_diff("x", other, one).bullets
    turned = {"added": "removed", "removed": "added", "changed": "changed"}
    assert {(item.id, item.kind) for item in there} == {(item.id, turned[item.kind]) for item in back}
    for item in there:
        [same] = [found for found in back if found.id == item.id]
        assert [(change.after, change.before) for change in item.fields] == [
            (change.before, change.after) for change in same.fields
        ]
    kept = {bullet.id for bullet in one.bullets} | {item.id for item in there if item.kind == "added"}
    assert kept - {item.id for item in there if item.kind == "removed"} == {bullet.id for bullet in other.bullets}
