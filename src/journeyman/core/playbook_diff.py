"""What changed in a playbook between two of its versions: bullets that were added, changed, removed, as data."""

from __future__ import annotations

from typing import Any, Literal

from journeyman.core.data import Entity
from journeyman.core.playbook import PlaybookBullet, PlaybookState, ToolCallingStrategy

_BOOKKEEPING = {"id", "domain", "version", "created_at", "last_updated", "tool_success_rate"}
"""Fields that follow from others, or change with every change."""


class FieldChange(Entity):
    """One field of a bullet, before and after, as JSON."""

    field: str
    before: Any = None
    after: Any = None


class BulletDiff(Entity):
    """What became of one bullet."""

    id: str
    kind: Literal["added", "changed", "removed"]
    title: str
    """Its tools, or what it says."""
    principal_id: str | None = None
    fields: tuple[FieldChange, ...] = ()
    """What changed in it; of a bullet that was added or removed, what it says and how far it was trusted."""


class PlaybookDiff(Entity):
    """From one version of a playbook to another, which may be the earlier one."""

    domain: str
    since: int
    to: int
    bullets: tuple[BulletDiff, ...] = ()


def playbook_diff(domain: str, since: PlaybookState, to: PlaybookState) -> PlaybookDiff:
    """The bullets in which two states of a playbook differ: added first, then changed, then removed."""
    old, new = ({bullet.id: bullet for bullet in state.bullets} for state in (since, to))
    added = [_alone(bullet, "added") for key, bullet in new.items() if key not in old]
    changed = [_changed(old[key], bullet) for key, bullet in new.items() if key in old and old[key] != bullet]
    removed = [_alone(bullet, "removed") for key, bullet in old.items() if key not in new]
    found = (*added, *(item for item in changed if item.fields), *removed)
    return PlaybookDiff(domain=domain, since=since.version, to=to.version, bullets=found)


def _alone(bullet: PlaybookBullet, kind: Literal["added", "removed"]) -> BulletDiff:
    side = "after" if kind == "added" else "before"
    told = {"content", "state", "helpful_count", "harmful_count"}
    fields = [FieldChange(field=name, **{side: value}) for name, value in _plain(bullet).items() if name in told]
    return BulletDiff(
        id=bullet.id, kind=kind, title=_title(bullet), principal_id=bullet.principal_id, fields=tuple(fields)
    )


def _changed(old: PlaybookBullet, new: PlaybookBullet) -> BulletDiff:
    before, after = _plain(old), _plain(new)
    fields = [
        FieldChange(field=name, before=before.get(name), after=after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
    return BulletDiff(id=new.id, kind="changed", title=_title(new), principal_id=new.principal_id, fields=tuple(fields))


def _plain(bullet: PlaybookBullet) -> dict[str, Any]:
    return bullet.model_dump(mode="json", exclude=_BOOKKEEPING)


def _title(bullet: PlaybookBullet) -> str:
    return " → ".join(bullet.tool_sequence) if isinstance(bullet, ToolCallingStrategy) else bullet.content
