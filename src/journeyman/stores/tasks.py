"""Tasks, their attachments and their earlier versions. What makes a good task is the toolkit's business."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from journeyman.core.audit import AuditNote
from journeyman.core.data import moment
from journeyman.core.tasks import (
    Attachment,
    Task,
    TaskFilter,
    TaskPage,
    TaskPriority,
    TaskSort,
    TaskStatus,
    TaskVersion,
)
from journeyman.stores.audit import add_note
from journeyman.stores.connection import Connection, each_word, json_text, json_text_over, marks
from journeyman.stores.database import Aggregate

URGENCY = {priority: number for number, priority in enumerate(TaskPriority)}
TOGETHER = 100
"""Ids in one statement."""

_ORDERS = {
    TaskSort.CREATED_DESC: "created_at DESC, id",
    TaskSort.ETA_ASC: "eta IS NULL, eta, created_at DESC, id",
    TaskSort.PRIORITY_DESC: "urgency DESC, eta IS NULL, eta, created_at DESC, id",
}
_COLUMNS = ("status", "urgency", "eta", "created_at", "updated_at", "title", "words", "body")


class SqlTasks(Aggregate):
    """Tasks in a database. A ``note`` goes into the audit with the change."""

    async def add(self, task: Task, *, note: AuditNote | None = None) -> Task:
        """Keep a new task (once) and return it as it stands."""
        return await self._database.write(partial(_add, task=task, note=note))

    async def get(self, task_id: str) -> Task | None:
        return await self._database.read(partial(_get, task_id=task_id))

    async def get_many(self, task_ids: Sequence[str]) -> Sequence[Task]:
        """Those of them that there are, in no particular order."""
        return await self._database.read(partial(_get_many, task_ids=list(dict.fromkeys(task_ids))))

    async def find(
        self,
        wanted: TaskFilter | None = None,
        *,
        sort: TaskSort = TaskSort.CREATED_DESC,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> TaskPage:
        """The tasks a filter leaves, and how many they are without the limit."""
        work = partial(_find, wanted=wanted or TaskFilter(), sort=sort, after=after, limit=limit, offset=offset)
        return await self._database.read(work)

    async def change(
        self, task_id: str, change: Callable[[Task], Task], *, now: float, note: AuditNote | None = None
    ) -> Task | None:
        """Put what ``change`` makes of a task in its place and return it; None when there is no such task.

        Nobody else's change comes in between. The version before is kept, unless nothing changed. Attachments can
        be added, by a reference that the task does not have yet; ``attach`` and ``detach`` do the rest. ``change`` may
        run more than once, and in another thread.
        """
        return await self._database.write(partial(_change, task_id=task_id, change=change, now=now, note=note))

    async def delete(self, task_id: str, *, note: AuditNote | None = None) -> bool:
        """Forget a task, its attachments and its versions."""
        return await self._database.write(partial(_delete_from, table="tasks", row_id=task_id, note=note))

    async def versions(self, task_id: str) -> Sequence[TaskVersion]:
        """What a task was before, newest first."""
        rows = await self._query(
            "SELECT number, replaced_at, body FROM task_versions WHERE task_id = ? ORDER BY number DESC", task_id
        )
        return tuple(
            TaskVersion(number=number, replaced_at=moment(replaced_at), task=Task.stored(body))
            for number, replaced_at, body in rows
        )

    async def stamps(self) -> Mapping[str, float]:
        """When each task was last changed, by id: enough to keep an index up to date."""
        return dict(await self._query("SELECT id, updated_at FROM tasks"))

    async def attach(self, attachment: Attachment, *, note: AuditNote | None = None) -> Attachment | None:
        """Keep an attachment, unless its task has that reference: returns the one that is kept; None without a task."""
        return await self._database.write(partial(_attach_to_task, attachment=attachment, note=note))

    async def attachment(self, attachment_id: str) -> Attachment | None:
        rows = await self._query("SELECT body FROM attachments WHERE id = ?", attachment_id)
        return Attachment.stored(rows[0][0]) if rows else None

    async def update_attachment(self, attachment: Attachment, *, note: AuditNote | None = None) -> bool:
        """Put this in the place of the attachment with its id; its task and its reference stay. False without one."""
        where = "WHERE id = ? AND task_id = ? AND reference = ?"
        values = (attachment.id, attachment.task_id, attachment.reference)

        def update(connection: Connection) -> bool:
            rows = connection.query(f"UPDATE attachments SET number = number {where} RETURNING body", *values)
            for (body,) in rows:
                connection.execute(
                    f"UPDATE attachments SET body = ? {where}", json_text_over(body, attachment), *values
                )
                add_note(connection, note, subject=attachment.id)
            return bool(rows)

        return await self._database.write(update)

    async def detach(self, attachment_id: str, *, note: AuditNote | None = None) -> bool:
        return await self._database.write(partial(_delete_from, table="attachments", row_id=attachment_id, note=note))


def _delete_from(connection: Connection, *, table: str, row_id: str, note: AuditNote | None) -> bool:
    deleted = connection.execute(f"DELETE FROM {table} WHERE id = ?", row_id) > 0
    if deleted:
        add_note(connection, note, subject=row_id)
    return deleted


# --- tasks


def _add(connection: Connection, *, task: Task, note: AuditNote | None) -> Task:
    names = ("id", "version", *_COLUMNS)
    values = (task.id, 1, *_values(task))
    added = connection.execute(
        f"INSERT INTO tasks ({', '.join(names)}) VALUES ({marks(values)}) ON CONFLICT (id) DO NOTHING", *values
    )
    if added:
        _tag(connection, task)
        for attachment in task.attachments:
            _attach(connection, attachment)
        add_note(connection, note, subject=task.id)
    kept = _get(connection, task_id=task.id)
    assert kept is not None, "it was added or there before, and this transaction still sees it"
    return kept


def _get(connection: Connection, *, task_id: str) -> Task | None:
    rows = connection.query("SELECT body FROM tasks WHERE id = ?", task_id)
    return _tasks(connection, [body for (body,) in rows])[0] if rows else None


def _get_many(connection: Connection, *, task_ids: Sequence[str]) -> Sequence[Task]:
    bodies: list[str] = []
    for piece in _pieces(task_ids):
        bodies += [body for (body,) in connection.query(f"SELECT body FROM tasks WHERE id IN ({marks(piece)})", *piece)]
    return _tasks(connection, bodies)


def _find(
    connection: Connection, *, wanted: TaskFilter, sort: TaskSort, after: str | None, limit: int, offset: int
) -> TaskPage:
    tests, values = _conditions(wanted)
    where = f"WHERE {' AND '.join(tests)}" if tests else ""
    [(total,)] = connection.query(f"SELECT COUNT(*) FROM tasks {where}", *values)
    if after is not None:
        numbered = f"SELECT id, ROW_NUMBER() OVER (ORDER BY {_ORDERS[sort]}) AS number FROM tasks {where}"
        rows = connection.query(f"SELECT number FROM ({numbered}) AS listed WHERE id = ?", *values, after)
        offset += rows[0][0] if rows else total
    rows = connection.query(
        f"SELECT body FROM tasks {where} ORDER BY {_ORDERS[sort]} LIMIT ? OFFSET ?", *values, limit, offset
    )
    return TaskPage(tasks=_tasks(connection, [body for (body,) in rows]), total=total)


def _change(
    connection: Connection, *, task_id: str, change: Callable[[Task], Task], now: float, note: AuditNote | None
) -> Task | None:
    # Changes nothing, but whoever else wants to change this task must wait.
    rows = connection.query("UPDATE tasks SET version = version WHERE id = ? RETURNING version, body", task_id)
    before = _get(connection, task_id=task_id) if rows else None
    if before is None:
        return None
    [(number, body)] = rows
    after = change(before)
    bare = before.model_copy(update={"attachments": ()})
    if after.model_copy(update={"attachments": ()}) != bare:
        connection.execute(
            "INSERT INTO task_versions (task_id, number, replaced_at, body) VALUES (?, ?, ?, ?)",
            *(task_id, number, now, body),
        )
        settings = ", ".join(f"{name} = ?" for name in _COLUMNS)
        connection.execute(
            f"UPDATE tasks SET version = version + 1, {settings} WHERE id = ?", *_values(after, over=body), task_id
        )
        connection.execute("DELETE FROM task_tags WHERE task_id = ?", task_id)
        _tag(connection, after)
        add_note(connection, note, subject=task_id)
    for attachment in after.attachments:
        _attach(connection, attachment)
    return _get(connection, task_id=task_id)


def _values(task: Task, *, over: str | None = None) -> tuple[Any, ...]:
    """In the order of ``_COLUMNS``; ``over`` is the body that this one takes the place of."""
    title = task.title.casefold()
    bare = task.model_copy(update={"attachments": ()})
    return (
        task.status.value,
        URGENCY[task.priority],
        None if task.eta is None else _seconds(task.eta),
        task.created_at.timestamp(),
        task.updated_at.timestamp(),
        title,
        f"{title}\n{(task.description or '').casefold()}",
        json_text(bare) if over is None else json_text_over(over, bare),
    )


def _seconds(when: datetime) -> float:
    """A time without a zone is taken as UTC, so that no server's own zone comes into it."""
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def _tag(connection: Connection, task: Task) -> None:
    for tag in dict.fromkeys(tag.casefold() for tag in task.tags):
        connection.execute("INSERT INTO task_tags (task_id, tag) VALUES (?, ?)", task.id, tag)


def _tasks(connection: Connection, bodies: Sequence[str]) -> tuple[Task, ...]:
    """Tasks with their attachments, oldest attachment first."""
    tasks = [Task.stored(body) for body in bodies]
    attached: dict[str, list[Attachment]] = {task.id: [] for task in tasks}
    for piece in _pieces(list(attached)):
        rows = connection.query(
            f"SELECT task_id, body FROM attachments WHERE task_id IN ({marks(piece)}) ORDER BY number", *piece
        )
        for task_id, body in rows:
            attached[task_id].append(Attachment.stored(body))
    return tuple(task.model_copy(update={"attachments": tuple(attached[task.id])}) for task in tasks)


def _pieces(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """One id alone, or pieces of one size: so there are few different statements, of a length every database takes."""
    if len(ids) == 1:
        yield ids
        return
    for start in range(0, len(ids), TOGETHER):
        piece = list(ids[start : start + TOGETHER])
        yield piece + piece[:1] * (TOGETHER - len(piece))


# --- filters


def _conditions(wanted: TaskFilter) -> tuple[list[str], list[Any]]:
    found: list[tuple[str, Sequence[Any]]] = []
    if wanted.status is not None:
        found.append(("status = ?", [wanted.status.value]))
    if wanted.priority is not None:
        found.append(("urgency = ?", [URGENCY[wanted.priority]]))
    if wanted.due_after is not None:
        found.append(("eta >= ?", [_seconds(wanted.due_after)]))
    if wanted.due_before is not None:
        found.append(("eta <= ?", [_seconds(wanted.due_before)]))
    if wanted.overdue_at is not None:
        found.append(("eta < ?", [_seconds(wanted.overdue_at)]))
        found.append(("status <> ?", [TaskStatus.COMPLETED.value]))
    tagged = "id IN (SELECT task_id FROM task_tags WHERE tag = ?)"
    found += [(tagged, [tag.casefold()]) for tag in wanted.tags]
    if wanted.title is not None:
        found += each_word("title", wanted.title)
    if wanted.text is not None:
        words = each_word("words", wanted.text) or [("1 = 1", [])]
        inside = " AND ".join(test for test, _ in words)
        found.append((f"(id = ? OR ({inside}))", [wanted.text.strip(), *_flat(values for _, values in words)]))
    return [test for test, _ in found], _flat(values for _, values in found)


def _flat(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return [value for values in lists for value in values]


# --- attachments


def _attach_to_task(connection: Connection, *, attachment: Attachment, note: AuditNote | None) -> Attachment | None:
    # As in _change: the task must not be deleted in between.
    if not connection.query("UPDATE tasks SET version = version WHERE id = ? RETURNING id", attachment.task_id):
        return None
    if _attach(connection, attachment):
        add_note(connection, note, subject=attachment.id)
    [(body,)] = connection.query(
        "SELECT body FROM attachments WHERE task_id = ? AND reference = ?", attachment.task_id, attachment.reference
    )
    return Attachment.stored(body)


def _attach(connection: Connection, attachment: Attachment) -> bool:
    """Whether it is new."""
    # Numbered, because several that are made at one moment have an order too.
    added = connection.execute(
        "INSERT INTO attachments (id, task_id, number, reference, body) "
        "VALUES (?, ?, (SELECT COALESCE(MAX(number), 0) + 1 FROM attachments WHERE task_id = ?), ?, ?) "
        "ON CONFLICT DO NOTHING",
        *(attachment.id, attachment.task_id, attachment.task_id, attachment.reference, json_text(attachment)),
    )
    return added > 0
