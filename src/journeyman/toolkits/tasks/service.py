"""What can be done with tasks and attachments, for tools and for doors. Knows no model and no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.core.audit import AuditNote
from journeyman.core.data import digest, moment, new_id
from journeyman.core.protocols import Clock, SystemClock
from journeyman.core.tasks import Attachment, AttachmentType, Task, TaskFilter, TaskPage, TaskSort, TaskVersion
from journeyman.retrieval.search import HybridIndex
from journeyman.toolkits import invalid
from journeyman.toolkits.tasks import inputs
from journeyman.toolkits.tasks.references import InvalidReferenceError, Reference, find_references, read_reference

if TYPE_CHECKING:
    from journeyman.stores.tasks import SqlTasks

DOMAIN = "tasks"
MOST_LISTED = 200
INDEXED_TOGETHER = 256
NEAR_ENOUGH = 0.2
"""The cosine below which a task that shares no word with the query is not about it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A search result."""

    task: Task
    score: float


@dataclass(frozen=True, slots=True)
class Changed:
    """A task after a change, and what its changed fields were before."""

    task: Task
    previous: Mapping[str, Any]


class TaskService:
    """Tasks over a store. Invalid values raise ToolError with the codes that the tools' descriptions name.

    ``index`` searches by meaning if it has an embedder; without one, by words. It is refreshed before each search, so
    that tasks written by other processes are found too.
    """

    def __init__(self, store: SqlTasks, clock: Clock | None = None, *, index: HybridIndex | None = None) -> None:
        self._store = store
        self._clock = clock or SystemClock()
        self._index = index if index is not None else HybridIndex()
        self._indexed: dict[str, float] = {}
        self._indexing = asyncio.Lock()

    # --- tasks

    async def create(
        self,
        title: str,
        *,
        description: str | None = None,
        priority: str = "medium",
        status: str = "pending",
        eta: str | None = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        key: str = "",
        note: AuditNote | None = None,
    ) -> Task:
        """Add a task; addresses in its title and description become attachments.

        ``key`` is an idempotency key: used again, it returns the first task. A ``note``, here and below, goes into the
        audit with the change: for doors at which no call of a tool is recorded.
        """
        task_id = _id("task", key)
        now = moment(self._clock.time())
        read = inputs.read_title(title)
        task = Task(
            id=task_id,
            title=read,
            description=description or None,
            status=inputs.read_status(status),
            priority=inputs.read_priority(priority),
            eta=inputs.read_eta(eta) if eta else None,
            tags=inputs.read_tags(tags),
            metadata=dict(metadata or {}),
            created_at=now,
            updated_at=now,
            attachments=self._attachments_in(task_id, read, description),
        )
        return await self._store.add(task, note=note)

    async def get(self, task_id: str) -> Task:
        """By its id alone. Raises TASK_NOT_FOUND."""
        task = await self._store.get(task_id)
        if task is None:
            raise await inputs.task_not_found(self._store, task_id)
        return task

    async def named(self, name: str) -> Task:
        """By its id or words of its title. Raises TASK_NOT_FOUND or AMBIGUOUS_TASK."""
        return await inputs.find_task(self._store, name)

    async def query(
        self,
        *,
        text: str | None = None,
        status: str | None = None,
        priority: str | None = None,
        tags: Iterable[str] = (),
        due_after: str | None = None,
        due_before: str | None = None,
        overdue: bool = False,
        sort: TaskSort = TaskSort.CREATED_DESC,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> TaskPage:
        """The tasks to which all of this applies. A plain date includes that day, on both ends of the range.

        A task is overdue when its day is over and it is not completed.
        """
        if not 1 <= limit <= MOST_LISTED or offset < 0:
            recover = f"Use a limit from 1 to {MOST_LISTED} and an offset of 0 or more"
            raise invalid("INVALID_LIMIT", f"limit {limit} with offset {offset} is not possible", recover)
        today = moment(self._clock.time()).replace(hour=0, minute=0, second=0, microsecond=0)
        wanted = TaskFilter(
            text=(text or "").strip()[: inputs.LONGEST_NAME] or None,
            status=inputs.read_status(status) if status else None,
            priority=inputs.read_priority(priority) if priority else None,
            tags=inputs.read_tags(tags),
            due_after=inputs.read_eta(due_after) if due_after else None,
            due_before=inputs.read_eta(due_before, end_of_day=True) if due_before else None,
            overdue_at=today if overdue else None,
        )
        return await self._store.find(wanted, sort=sort, after=after, limit=limit, offset=offset)

    async def update(
        self,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        status: str | None = None,
        priority: str | None = None,
        eta: str | None = None,
        tags: Iterable[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        note: AuditNote | None = None,
    ) -> Changed:
        """Change the fields that are given, and keep the version before. An empty description or eta removes it."""
        readers: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            "title": (title, inputs.read_title),
            "description": (description, lambda text: text or None),
            "status": (status, inputs.read_status),
            "priority": (priority, inputs.read_priority),
            "eta": (eta, lambda text: inputs.read_eta(text) if text.strip() else None),
            "tags": (tags, inputs.read_tags),
            "metadata": (metadata, dict),
        }
        fields = {name: read(value) for name, (value, read) in readers.items() if value is not None}
        if not fields:
            recover = "Give at least one of title, description, status, priority, eta, tags"
            raise invalid("NOTHING_TO_CHANGE", f"no new value was given for task {name!r}", recover)
        return await self._change((await self.named(name)).id, fields, note)

    async def _change(self, task_id: str, fields: Mapping[str, Any], note: AuditNote | None) -> Changed:
        now = self._clock.time()
        previous: dict[str, Any] = {}

        def change(task: Task) -> Task:
            previous.clear()
            previous.update({name: getattr(task, name) for name in fields if getattr(task, name) != fields[name]})
            if not previous:
                return task
            attachments = task.attachments
            if previous.keys() & {"title", "description"}:
                attachments += self._attachments_in(task.id, fields.get("title"), fields.get("description"))
            return task.model_copy(update={**fields, "updated_at": moment(now), "attachments": attachments})

        task = await self._store.change(task_id, change, now=now, note=note)
        if task is None:
            raise await inputs.task_not_found(self._store, task_id)
        return Changed(task, previous)

    async def delete(self, name: str, *, asked_at: float | None = None, note: AuditNote | None = None) -> Task:
        """Delete a task, its attachments and its versions; returns what it was.

        With ``asked_at``, a task found by words and created or changed since then is not deleted: the person who
        approved may have meant another one.
        """
        task = await self.named(name)
        _refuse_if_changed(task, name, asked_at)
        if not await self._store.delete(task.id, note=note):
            raise await inputs.task_not_found(self._store, task.id)
        return task

    async def versions(self, name: str) -> Sequence[TaskVersion]:
        """A task's earlier versions, newest first."""
        return await self._store.versions((await self.named(name)).id)

    async def restore(self, name: str, number: int | None = None, *, note: AuditNote | None = None) -> Changed:
        """Make a task what it was at an earlier version, the latest unless one is named; what it is now is kept, too.

        Raises VERSION_NOT_FOUND.
        """
        task = await self.named(name)
        kept = await self._store.versions(task.id)
        wanted = [version.task for version in kept if number is None or version.number == number]
        if not wanted:
            known = ", ".join(str(version.number) for version in kept[: inputs.MOST_NAMED]) or "none"
            said = "earlier version" if number is None else f"version {number}"
            raise invalid("VERSION_NOT_FOUND", f"task {task.title!r} has no {said}", f"Versions that are kept: {known}")
        fields = {field: getattr(wanted[0], field) for field in ("title", "description", "status", "priority", "eta")}
        return await self._change(task.id, {**fields, "tags": wanted[0].tags, "metadata": wanted[0].metadata}, note)

    # --- attachments

    async def attachment(self, attachment_id: str) -> Attachment:
        """Raises ATTACHMENT_NOT_FOUND."""
        attachment = await self._store.attachment(attachment_id)
        if attachment is None:
            raise inputs.attachment_not_found(attachment_id, "name its task as well to find it by its address or title")
        return attachment

    async def attachment_named(
        self, attachment: str, *, task: str | None = None, asked_at: float | None = None
    ) -> Attachment:
        """By its id, or with its task by its address or words of its title."""
        if not task:
            return await self.attachment(attachment)
        owner = await self.named(task)
        _refuse_if_changed(owner, task, asked_at)
        return inputs.find_attachment(owner, attachment)

    async def attach(
        self,
        name: str,
        reference: str,
        *,
        type: AttachmentType | None = None,
        title: str | None = None,
        content: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        key: str = "",
        note: AuditNote | None = None,
    ) -> Attachment:
        """Attach an address to a task; its type is inferred where none is given.

        Raises INVALID_REFERENCE, or ATTACHMENT_EXISTS where the task has it (unless under the same ``key``).
        """
        try:
            read = read_reference(reference)
        except InvalidReferenceError as error:
            message = f"{reference!r} cannot be attached: {error}"
            raise invalid("INVALID_REFERENCE", message, "Give a web address, https://…") from None
        task = await self.named(name)
        made = self._attachment(task.id, read, key=key)
        given = {"type": type, "title": title, "content": content}
        changes = {field: value for field, value in given.items() if value}
        made = made.model_copy(update={**changes, "metadata": {**made.metadata, **(metadata or {})}})
        kept = await self._store.attach(made, note=note)
        if kept is None:
            raise await inputs.task_not_found(self._store, task.id)
        if kept.id != made.id:
            message = f"task {task.title!r} has {read.url!r} attached already"
            raise invalid("ATTACHMENT_EXISTS", message, "Nothing needs to be done; tell the user that it is attached")
        return kept

    async def detach(
        self,
        attachment: str,
        *,
        task: str | None = None,
        asked_at: float | None = None,
        note: AuditNote | None = None,
    ) -> Attachment:
        """Remove an attachment: by its id, or with its task by its address or words of its title."""
        removed = await self.attachment_named(attachment, task=task, asked_at=asked_at)
        if not await self._store.detach(removed.id, note=note):
            raise inputs.attachment_not_found(attachment, "it was removed a moment ago")
        return removed

    def _attachments_in(self, task_id: str, *texts: str | None) -> tuple[Attachment, ...]:
        return tuple(self._attachment(task_id, reference) for reference in find_references(*texts))

    def _attachment(self, task_id: str, reference: Reference, *, key: str = "") -> Attachment:
        now = moment(self._clock.time())
        return Attachment(
            id=_id("att", key),
            task_id=task_id,
            type=reference.type,
            reference=reference.url,
            title=reference.title,
            metadata=reference.metadata,
            created_at=now,
            updated_at=now,
        )

    # --- search

    async def search(self, text: str, *, limit: int = 10) -> list[Found]:
        """The tasks that are about this, best first."""
        await self._refresh_index()
        hits = await self._index.search(text, k=limit, domain=DOMAIN)
        near = [hit for hit in hits if hit.words or (hit.similarity or 0.0) >= NEAR_ENOUGH]
        tasks = {task.id: task for task in await self._store.get_many([hit.id for hit in near])}
        return [Found(tasks[hit.id], hit.score) for hit in near if hit.id in tasks]

    async def _refresh_index(self) -> None:
        """Bring the index up to date with the store."""
        async with self._indexing:
            stamps = await self._store.stamps()
            gone = self._indexed.keys() - stamps.keys()
            self._index.remove(gone, domain=DOMAIN)
            for task_id in gone:
                del self._indexed[task_id]
            changed = [task_id for task_id, stamp in stamps.items() if self._indexed.get(task_id) != stamp]
            # In batches, so that progress is kept when the caller times out.
            for start in range(0, len(changed), INDEXED_TOGETHER):
                tasks = await self._store.get_many(changed[start : start + INDEXED_TOGETHER])
                texts = {task.id: f"{task.title}\n{task.description or ''}\n{' '.join(task.tags)}" for task in tasks}
                await self._index.put(texts, domain=DOMAIN)
                self._indexed.update({task.id: stamps[task.id] for task in tasks})


def _refuse_if_changed(task: Task, name: str, asked_at: float | None) -> None:
    if asked_at is not None and task.id != name and task.updated_at.timestamp() > asked_at:
        means = f"the task that {name!r} means now, {task.title!r} ({task.id})"
        recover = f"Nothing was deleted. If this task is meant, call it again with the id {task.id!r}"
        raise invalid("TASK_CHANGED", f"{means}, was made or changed after you were asked", recover)


def _id(prefix: str, key: str) -> str:
    return f"{prefix}_{digest(key)[:24]}" if key else new_id(prefix)
