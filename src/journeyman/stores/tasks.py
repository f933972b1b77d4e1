"""Tasks, their attachments and their earlier versions. What makes a good task is the toolkit's business."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
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
from journeyman.stores.connection import Connection, Where, is_among, json_text, json_text_over
from journeyman.stores.database import Aggregate, reads, writes

URGENCY = {priority: number for number, priority in enumerate(TaskPriority)}

_ORDERS = {
    TaskSort.CREATED_DESC: "created_at DESC, id",
    TaskSort.ETA_ASC: "eta IS NULL, eta, created_at DESC, id",
    TaskSort.PRIORITY_DESC: "urgency DESC, eta IS NULL, eta, created_at DESC, id",
}


class SqlTasks(Aggregate):
    """Tasks in a database. A ``note`` goes into the audit with the change."""

    @writes(sync=True)
    def add(self, connection: Connection, task: Task, *, note: AuditNote | None = None) -> Task:
        """Keep a new task (once) and return it as it stands."""
        if connection.put("tasks", {"id": task.id, "version": 1, **_row(task)}, key="id"):
            _tag(connection, task)
            for attachment in task.attachments:
                _attach(connection, attachment)
            add_note(connection, note, subject=task.id)
        kept = _get(connection, task.id)
        assert kept is not None, "it was added or there before, and this transaction still sees it"
        return kept

    @reads
    def get(self, connection: Connection, task_id: str) -> Task | None:
        return _get(connection, task_id)

    @reads
    def get_many(self, connection: Connection, task_ids: Sequence[str]) -> Sequence[Task]:
        """Those of them that there are, in no particular order."""
        rows = connection.query(f"SELECT body FROM tasks WHERE {is_among('id')}", json.dumps([*task_ids]))
        return _tasks(connection, [body for (body,) in rows])

    @reads
    def find(
        self,
        connection: Connection,
        wanted: TaskFilter | None = None,
        *,
        sort: TaskSort = TaskSort.CREATED_DESC,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> TaskPage:
        """The tasks a filter leaves, and how many they are without the limit."""
        where = _wanted(wanted or TaskFilter())
        clause, values = where.clause, where.values
        [(total,)] = connection.query(f"SELECT COUNT(*) FROM tasks {clause}", *values)
        if after is not None:
            numbered = f"SELECT id, ROW_NUMBER() OVER (ORDER BY {_ORDERS[sort]}) AS number FROM tasks {clause}"
            rows = connection.query(f"SELECT number FROM ({numbered}) AS listed WHERE id = ?", *values, after)
            offset += rows[0][0] if rows else total
        rows = connection.query(
            f"SELECT body FROM tasks {clause} ORDER BY {_ORDERS[sort]} LIMIT ? OFFSET ?", *values, limit, offset
        )
        return TaskPage(tasks=_tasks(connection, [body for (body,) in rows]), total=total)

    @writes(sync=True)
    def change(
        self,
        connection: Connection,
        task_id: str,
        change: Callable[[Task], Task],
        *,
        now: float,
        note: AuditNote | None = None,
    ) -> Task | None:
        """Put what ``change`` makes of a task in its place and return it; None when there is no such task.

        Nobody else's change comes in between. The version before is kept, unless nothing changed. Attachments can
        be added, by a reference that the task does not have yet; ``attach`` and ``detach`` do the rest. ``change`` may
        run more than once, and in another thread.
        """
        # Changes nothing, but whoever else wants to change this task must wait.
        rows = connection.query("UPDATE tasks SET version = version WHERE id = ? RETURNING version, body", task_id)
        before = _get(connection, task_id) if rows else None
        if before is None:
            return None
        [(number, body)] = rows
        after = change(before)
        bare = before.model_copy(update={"attachments": ()})
        if after.model_copy(update={"attachments": ()}) != bare:
            former = {"task_id": task_id, "number": number, "replaced_at": now, "body": body}
            connection.put("task_versions", former)
            row = _row(after, over=body)
            settings = ", ".join(f"{name} = ?" for name in row)
            sql = f"UPDATE tasks SET version = version + 1, {settings} WHERE id = ?"
            connection.execute(sql, *row.values(), task_id)
            connection.execute("DELETE FROM task_tags WHERE task_id = ?", task_id)
            _tag(connection, after)
            add_note(connection, note, subject=task_id)
        for attachment in after.attachments:
            _attach(connection, attachment)
        return _get(connection, task_id)

    @writes(sync=True)
    def delete(self, connection: Connection, task_id: str, *, note: AuditNote | None = None) -> bool:
        """Forget a task, its attachments and its versions."""
        return _delete_from(connection, "tasks", task_id, note)

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

    @writes(sync=True)
    def attach(
        self, connection: Connection, attachment: Attachment, *, note: AuditNote | None = None
    ) -> Attachment | None:
        """Keep an attachment, unless its task has that reference: returns the one that is kept; None without a task."""
        # As in ``change``: the task must not be deleted in between.
        if not connection.query("UPDATE tasks SET version = version WHERE id = ? RETURNING id", attachment.task_id):
            return None
        if _attach(connection, attachment):
            add_note(connection, note, subject=attachment.id)
        [(body,)] = connection.query(
            "SELECT body FROM attachments WHERE task_id = ? AND reference = ?", attachment.task_id, attachment.reference
        )
        return Attachment.stored(body)

    async def attachment(self, attachment_id: str) -> Attachment | None:
        rows = await self._query("SELECT body FROM attachments WHERE id = ?", attachment_id)
        return Attachment.stored(rows[0][0]) if rows else None

    @writes(sync=True)
    def update_attachment(
        self, connection: Connection, attachment: Attachment, *, note: AuditNote | None = None
    ) -> bool:
        """Put this in the place of the attachment with its id; its task and its reference stay. False without one."""
        which = "WHERE id = ? AND task_id = ? AND reference = ?"
        values = (attachment.id, attachment.task_id, attachment.reference)
        rows = connection.query(f"UPDATE attachments SET number = number {which} RETURNING body", *values)
        for (body,) in rows:
            connection.execute(f"UPDATE attachments SET body = ? {which}", json_text_over(body, attachment), *values)
            add_note(connection, note, subject=attachment.id)
        return bool(rows)

    @writes(sync=True)
    def detach(self, connection: Connection, attachment_id: str, *, note: AuditNote | None = None) -> bool:
        return _delete_from(connection, "attachments", attachment_id, note)


def _delete_from(connection: Connection, table: str, row_id: str, note: AuditNote | None) -> bool:
    deleted = connection.execute(f"DELETE FROM {table} WHERE id = ?", row_id) > 0
    if deleted:
        add_note(connection, note, subject=row_id)
    return deleted


# --- tasks


def _get(connection: Connection, task_id: str) -> Task | None:
    rows = connection.query("SELECT body FROM tasks WHERE id = ?", task_id)
    return _tasks(connection, [body for (body,) in rows])[0] if rows else None


def _row(task: Task, *, over: str | None = None) -> dict[str, Any]:
    """``over`` is the body that this one takes the place of."""
    title = task.title.casefold()
    bare = task.model_copy(update={"attachments": ()})
    return {
        "status": task.status.value,
        "urgency": URGENCY[task.priority],
        "eta": None if task.eta is None else _seconds(task.eta),
        "created_at": task.created_at.timestamp(),
        "updated_at": task.updated_at.timestamp(),
        "title": title,
        "words": f"{title}\n{(task.description or '').casefold()}",
        "body": json_text(bare) if over is None else json_text_over(over, bare),
    }


def _seconds(when: datetime) -> float:
    """A time without a zone is taken as UTC, so that no server's own zone comes into it."""
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def _tag(connection: Connection, task: Task) -> None:
    for tag in dict.fromkeys(tag.casefold() for tag in task.tags):
        connection.put("task_tags", {"task_id": task.id, "tag": tag})


def _tasks(connection: Connection, bodies: Sequence[str]) -> tuple[Task, ...]:
    """Tasks with their attachments, oldest attachment first."""
    tasks = [Task.stored(body) for body in bodies]
    attached: dict[str, list[Attachment]] = {task.id: [] for task in tasks}
    sql = f"SELECT task_id, body FROM attachments WHERE {is_among('task_id')} ORDER BY number"
    for task_id, body in connection.query(sql, json.dumps([*attached])):
        attached[task_id].append(Attachment.stored(body))
    return tuple(task.model_copy(update={"attachments": tuple(attached[task.id])}) for task in tasks)


# --- filters


def _wanted(wanted: TaskFilter) -> Where:
    where = Where().equals(status=wanted.status and wanted.status.value)
    where.equals(urgency=None if wanted.priority is None else URGENCY[wanted.priority])
    if wanted.overdue_at is not None:
        where.holds("status <> ?", TaskStatus.COMPLETED.value)
    for sign, when in ((">=", wanted.due_after), ("<=", wanted.due_before), ("<", wanted.overdue_at)):
        if when is not None:
            where.holds(f"eta {sign} ?", _seconds(when))
    for tag in wanted.tags:
        where.holds("id IN (SELECT task_id FROM task_tags WHERE tag = ?)", tag.casefold())
    where.words("title", wanted.title or "")
    if wanted.text is not None:
        words = Where().words("words", wanted.text)
        where.holds(f"(id = ? OR ({' AND '.join(words.tests) or '1 = 1'}))", wanted.text.strip(), *words.values)
    return where


# --- attachments


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
