"""The tasks toolkit as a model sees it: ten tools over one service.

The schemas show a model what is allowed; the service checks it, so that an invalid value is refused with this
toolkit's own error code and advice.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from journeyman.core.calls import LABEL, ToolContext
from journeyman.core.policy import RiskLevel
from journeyman.core.tasks import Task, TaskPriority, TaskSort, TaskStatus
from journeyman.toolkits.tasks import wording
from journeyman.toolkits.tasks.inputs import LONGEST_TITLE, read_sort
from journeyman.toolkits.tasks.service import MOST_LISTED, TaskService
from journeyman.tools.decorator import tool
from journeyman.tools.tool import Tool

CATEGORY = "tasks"
_CHANGES: dict[str, Any] = {"category": CATEGORY, "risk": RiskLevel.REVERSIBLE}
_READS: dict[str, Any] = {**_CHANGES, "read_only": True}
_DELETES: dict[str, Any] = {"category": CATEGORY, "risk": RiskLevel.IRREVERSIBLE}
_TITLE = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": LONGEST_TITLE})
_PRIORITY = WithJsonSchema({"type": "string", "enum": [item.value for item in TaskPriority]})

Title = Annotated[str, _TITLE]
Link = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^https?://[^ ]+$"})]
Priority = Annotated[str, _PRIORITY]
Sort = Annotated[str, WithJsonSchema({"type": "string", "enum": [item.value for item in TaskSort]})]
# Optional; a model may also write null.
MaybeText = Annotated[str | None, WithJsonSchema({"type": "string"})]
MaybeDay = Annotated[str | None, WithJsonSchema({"type": "string", "format": "date"})]
"""A date; the service accepts a time as well, which few people want."""
MaybeTitle = Annotated[str | None, _TITLE]
MaybePriority = Annotated[str | None, _PRIORITY]
MaybeStatus = Annotated[str | None, WithJsonSchema({"type": "string", "enum": [item.value for item in TaskStatus]})]
MaybeTexts = Annotated[list[str] | None, WithJsonSchema({"type": "array", "items": {"type": "string"}})]
Format = Literal["concise", "standard", "detailed"]

TaskName = Annotated[str, Field(description="The task's id or words of its title.")]

_SHOWN: dict[Format, set[str] | None] = {
    "concise": {"id", "status"},
    "standard": {"id", "title", "status", "priority", "eta", "tags", "created_at"},
    "detailed": None,
}


def task_tools(service: TaskService) -> list[Tool[..., Any]]:
    """The tools over a service, for a ``ToolLibrary``."""
    made = _TaskTools(service)
    tasks: list[Tool[..., Any]] = [made.create_task, made.query_tasks, made.search_tasks, made.update_task]
    tasks += [made.list_task_versions, made.restore_task]
    return [*tasks, made.delete_task, made.list_attachments, made.add_attachment, made.delete_attachment]


def shown(task: Task, *, format: Format = "detailed") -> dict[str, Any]:
    """As much of a task as a format has, as plain JSON."""
    return task.model_dump(mode="json", include=_SHOWN[format])


def _listed(task: Task, format: Format, context: ToolContext | None) -> dict[str, Any]:
    """A task as it is listed. What others' words made stays theirs, and says where they were read."""
    label = task.metadata.get(LABEL)
    if label and context is not None:
        context.mark(label)
    return shown(task, format=format) | ({"written_in": label["source"]} if label else {})


def _result(task: Task) -> dict[str, Any]:
    """A whole task, its id also under the name by which other tools take it."""
    return {"task_id": task.id, **shown(task)}


def _url_as_reference(given: dict[str, Any]) -> dict[str, Any]:
    if "url" in given and "reference" not in given:
        given["reference"] = given.pop("url")
    return given


def _filters_as_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """``filters`` is an object with the filters; ``date_range`` in it has a start and an end. An id is a text."""
    if "task_id" in given and "text" not in given:
        given["text"] = given.pop("task_id")
    filters = given.get("filters")
    if not isinstance(filters, dict):
        if filters is None:
            given.pop("filters", None)
        return given
    named = {name: value for name, value in filters.items() if name != "date_range"}
    if isinstance(dates := filters.get("date_range"), dict):
        ends = {"start": "due_after", "end": "due_before"}
        named |= {ends.get(name, name): value for name, value in dates.items()}
    elif dates is not None:
        named["date_range"] = dates  # refused by its name
    return {**named, **{name: value for name, value in given.items() if name != "filters"}}


async def about_attachment(service: TaskService, arguments: dict[str, Any], verb: str) -> str:
    """Which attachment a call means and what it does to it, for the person who is asked about it."""
    attachment = await service.attachment_named(arguments["attachment_id"], task=arguments.get("task_id"))
    task = await service.get(attachment.task_id)
    named = f"“{attachment.title}” ({attachment.reference})" if attachment.title else attachment.reference
    return f"{verb} the attachment {named} of the task “{task.title}”"


class _TaskTools:
    """Docstrings are what a model reads."""

    def __init__(self, service: TaskService) -> None:
        self._service = service

    async def _about_deleting(self, arguments: dict[str, Any], context: ToolContext) -> str:
        task = await self._service.named(arguments["task_id"])
        count = len(task.attachments)
        attached = f", with {count} attachment{'' if count == 1 else 's'}" if count else ""
        return f"Delete the task “{task.title}” ({task.status.value.replace('_', ' ')}{attached})"

    async def _about_changing(self, arguments: dict[str, Any], context: ToolContext) -> str:
        task = await self._service.named(arguments["task_id"])
        changes = [name for name, value in arguments.items() if value is not None and name != "task_id"]
        return f"Change the task “{task.title}”: {', '.join(changes)}"

    async def _about_restoring(self, arguments: dict[str, Any], context: ToolContext) -> str:
        task, number = await self._service.named(arguments["task_id"]), arguments.get("version")
        return f"Restore {'the last version' if number is None else f'version {number}'} of the task “{task.title}”"

    async def _about_attaching(self, arguments: dict[str, Any], context: ToolContext) -> str:
        task = await self._service.named(arguments["task_id"])
        return f"Attach {arguments['reference']} to the task “{task.title}”"

    @tool(
        **_CHANGES,
        idempotent=True,
        sends=(),
        keeps_labels=True,
        examples=[
            "Remind me to call Anna",
            "Add a task for the dentist",
            "Remember to pay the bill",
            "I have to call the plumber",
            "I need to fix the door",
            "Put bread on my list",
            {"title": "Buy milk"},
            {"title": "Prepare the quarterly report", "priority": "high", "eta": "2027-01-31", "tags": ["finance"]},
        ],
        render=wording.added,
    )
    async def create_task(
        self,
        title: Title,
        description: MaybeText = None,
        priority: Priority = "medium",
        eta: MaybeDay = None,
        tags: MaybeTexts = None,
        *,
        context: ToolContext,
    ) -> dict[str, Any]:
        """Create a new task. Use to add a task or to put something on the task list.

        It starts as pending. Web addresses in the title or description become attachments by themselves. Returns the
        task with its id. Errors: INVALID_TITLE, INVALID_PRIORITY, INVALID_ETA.

        Args:
            title: What is to be done, in the user's words.
            description: More details, as Markdown; only when the user gives them.
            priority: How important it is; only when the user says so.
            eta: The day it is due; only when the user says when.
            tags: Labels; only when the user names tags.
        """
        key = context.idempotency_key  # after a crash the call is repeated with the same one, and finds its task
        metadata = None if context.label is None else {LABEL: context.label.model_dump(mode="json")}
        task = await self._service.create(
            title, description=description, priority=priority, eta=eta, tags=tags or (), metadata=metadata, key=key
        )
        return _result(task)

    @tool(
        **_READS,
        tags=("list", "show", "filter"),
        examples=[
            "Show my open tasks",
            "List tasks with high priority",
            "What do I have to do this week?",
            "What is on my list?",
            "Which tasks are overdue?",
            {"status": "pending", "sort": "priority_desc"},
            {"due_after": "2027-01-01", "due_before": "2027-01-31", "format": "concise"},
        ],
        adapt=_filters_as_arguments,
        render=wording.found,
        metadata={"aliases": ["list_tasks", "get_task"]},
    )
    async def query_tasks(
        self,
        text: MaybeText = None,
        status: MaybeStatus = None,
        priority: MaybePriority = None,
        tags: MaybeTexts = None,
        due_after: MaybeDay = None,
        due_before: MaybeDay = None,
        overdue: bool = False,
        sort: Sort = "eta_asc",
        limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 50,
        format: Format = "standard",
        *,
        context: ToolContext | None = None,
    ) -> dict[str, Any]:
        """List tasks. Use to show tasks: all, or those with a status, priority, tag or due date, or sorted.

        All filters must hold; without any, every task is listed. Returns the tasks and their total number, which can
        be more than the limit. Errors: INVALID_PRIORITY, INVALID_STATUS, INVALID_ETA.

        Args:
            text: Words in the title or the description, or a task's id.
            status: Only tasks with this status: open or to do is pending, done or finished is completed, started is
                in_progress.
            priority: Only tasks with this priority; urgent or important is high.
            tags: Only tasks with these tags.
            due_after: Only tasks due from this day on, or after it.
            due_before: Only tasks due by or until this day, or before it.
            overdue: Only overdue tasks: their day is over, and they are not completed.
            sort: The order: eta_asc, earliest due date on top; priority_desc, highest priority on top;
                created_desc, newest on top.
            limit: How many tasks at most.
            format: How much of each task is shown: concise (id and status), standard, or detailed for everything.
        """
        given: dict[str, Any] = {"text": text, "status": status, "priority": priority, "tags": tags}
        given |= {"due_after": due_after, "due_before": due_before, "overdue": overdue}
        filters = {name: value for name, value in given.items() if value}
        page = await self._service.query(**filters, sort=read_sort(sort), limit=limit)
        tasks = [_listed(task, format, context) for task in page.tasks]
        return {"tasks": tasks, "total": page.total, "filters": filters}

    @tool(
        **_READS,
        tags=("find",),
        examples=["Find tasks about taxes", {"query": "anything about money"}],
        render=wording.fitting,
    )
    async def search_tasks(
        self,
        query: Annotated[str, Field(min_length=1)],
        limit: Annotated[int, Field(ge=1, le=50)] = 10,
        format: Format = "standard",
        *,
        context: ToolContext | None = None,
    ) -> dict[str, Any]:
        """Search tasks by meaning. Use to find tasks about a topic.

        Returns the tasks that fit best, best first, each with a score; none when nothing fits. For status, priority,
        dates or tags use query_tasks.

        Args:
            query: What the tasks are about.
            limit: How many tasks at most.
            format: How much of each task is shown: concise (id and status), standard, or detailed for everything.
        """
        hits = await self._service.search(query, limit=limit)
        return {"tasks": [{**_listed(item.task, format, context), "score": round(item.score, 3)} for item in hits]}

    @tool(
        **_CHANGES,
        tags=("change", "complete", "rename", "start", "mark"),
        examples=[
            "Mark the laundry as done",
            "Complete the essay",
            "Finish the essay",
            "I'm done with the essay",
            "Tick off the laundry",
            "Start the essay",
            "Move the essay to Monday",
            "Postpone the essay to Friday",
            "Rename laundry to washing",
            "Tag the essay with school",
            "Set the essay to high priority",
            "Make the essay high priority",
            {"task_id": "quarterly report", "status": "completed"},
            {"task_id": "buy milk", "priority": "high", "eta": "2027-01-31"},
        ],
        describe=_about_changing,
        render=wording.changed,
    )
    async def update_task(
        self,
        task_id: TaskName,
        title: MaybeTitle = None,
        description: MaybeText = None,
        status: MaybeStatus = None,
        priority: MaybePriority = None,
        eta: MaybeDay = None,
        tags: MaybeTexts = None,
    ) -> dict[str, Any]:
        """Change a task. Use to rename, tag, start or complete it, or to set its status, priority or due date.

        Only the given fields change; the version before is kept. Returns the task and the previous values, and
        restore_task undoes the change. Errors: TASK_NOT_FOUND; AMBIGUOUS_TASK, then ask the user which one;
        INVALID_TITLE, INVALID_STATUS, INVALID_PRIORITY, INVALID_ETA.

        Args:
            title: The new title, to rename the task.
            description: The new description text; empty to remove it.
            status: The new status: done or finished is completed, started is in_progress, reopened is pending.
            priority: The new priority.
            eta: The new due day; empty to remove it.
            tags: The new tags, to tag the task; they take the place of all old ones.
        """
        changed = await self._service.update(
            task_id, title=title, description=description, status=status, priority=priority, eta=eta, tags=tags
        )
        return {**_result(changed.task), "previous": dict(changed.previous)}

    @tool(**_READS, examples=[{"task_id": "quarterly report"}])
    async def list_task_versions(self, task_id: TaskName) -> dict[str, Any]:
        """List the earlier versions of one task. Use only before restore_task, to see what a task was.

        Returns each version's number, when it was replaced, and its fields, newest first.
        Errors: TASK_NOT_FOUND; AMBIGUOUS_TASK, then ask the user which one.
        """
        kept = await self._service.versions(task_id)
        return {"versions": [version.model_dump(mode="json") for version in kept]}

    @tool(
        **_CHANGES,
        examples=["Undo the change of the essay", {"task_id": "quarterly report"}],
        describe=_about_restoring,
        render=wording.changed,
    )
    async def restore_task(
        self, task_id: TaskName, version: Annotated[int | None, WithJsonSchema({"type": "integer"})] = None
    ) -> dict[str, Any]:
        """Restore an earlier version of a task. Use to undo what update_task has changed.

        Returns the task and the values before. Errors: TASK_NOT_FOUND, VERSION_NOT_FOUND; AMBIGUOUS_TASK, then ask the
        user which one.

        Args:
            version: The number of an earlier version; left out, the latest change is undone.
        """
        changed = await self._service.restore(task_id, version)
        return {**_result(changed.task), "previous": dict(changed.previous)}

    @tool(
        **_DELETES,
        examples=["Remove the laundry task", "Erase the laundry task", {"task_id": "clean the garage"}],
        describe=_about_deleting,
        render=wording.deleted,
    )
    async def delete_task(self, task_id: TaskName, *, context: ToolContext) -> dict[str, Any]:
        """Delete a task. Use to remove a task for good.

        Its attachments go with it. For a task that is done use update_task with status completed. Returns what was
        deleted.
        Errors: TASK_NOT_FOUND, TASK_CHANGED; AMBIGUOUS_TASK, then ask the user which one.
        """
        deleted = await self._service.delete(task_id, asked_at=context.requested_at)
        return {"deleted": deleted.model_dump(mode="json", include={"id", "title", "status"})}

    @tool(**_READS, reads="untrusted", examples=[{"task_id": "quarterly report"}], render=wording.attachments)
    async def list_attachments(self, task_id: TaskName) -> dict[str, Any]:
        """List the attachments of one task. Use only to get files and links that are attached to a task.

        Returns the task's id and title and its attachments with their ids.
        Errors: TASK_NOT_FOUND; AMBIGUOUS_TASK, then ask the user which one.
        """
        task = await self._service.named(task_id)
        attachments = [attachment.model_dump(mode="json") for attachment in task.attachments]
        return {"task_id": task.id, "task_title": task.title, "attachments": attachments}

    @tool(
        **_CHANGES,
        idempotent=True,
        examples=[
            "Attach https://example.com/plan to the essay",
            {"task_id": "login bug", "reference": "https://github.com/acme/rocket/issues/7"},
        ],
        adapt=_url_as_reference,
        describe=_about_attaching,
        render=wording.attached,
    )
    async def add_attachment(
        self, reference: Link, task_id: TaskName, title: MaybeText = None, *, context: ToolContext
    ) -> dict[str, Any]:
        """Attach a URL to a task. Use only when the request contains a URL.

        GitHub and Gmail addresses are recognised; tracking parameters are removed. Returns the attachment with its id.
        Errors: INVALID_REFERENCE, ATTACHMENT_EXISTS, TASK_NOT_FOUND; AMBIGUOUS_TASK, then ask the user which one.

        Args:
            reference: The URL or link, which starts with http.
            title: What to call the attachment; only when the user names it.
        """
        key = context.idempotency_key
        return (await self._service.attach(task_id, reference, title=title, key=key)).model_dump(mode="json")

    @tool(
        **_DELETES,
        tags=("detach",),
        examples=[
            "Detach the link from the essay",
            {"task_id": "quarterly report", "attachment_id": "https://example.com/report.pdf"},
        ],
        describe=lambda self, arguments, context: about_attachment(self._service, arguments, "Delete"),
        render=wording.detached,
    )
    async def delete_attachment(
        self, attachment_id: str, task_id: MaybeText = None, *, context: ToolContext
    ) -> dict[str, Any]:
        """Delete an attachment of a task. Use to remove or detach a file or link from a task.

        Returns what was removed. Errors: ATTACHMENT_NOT_FOUND, TASK_NOT_FOUND, TASK_CHANGED; AMBIGUOUS_ATTACHMENT or
        AMBIGUOUS_TASK, then ask the user which one.

        Args:
            attachment_id: The attachment's id, its URL or words of its title.
            task_id: The task's id or words of its title.
        """
        removed = await self._service.detach(attachment_id, task=task_id, asked_at=context.requested_at)
        return {"deleted": removed.model_dump(mode="json", include={"id", "task_id", "reference", "title"})}
