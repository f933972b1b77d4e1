"""The tools on offer: a task manager's, with their descriptions. Nothing here is ever run."""

from typing import Annotated, Literal

from pydantic import Field

from journeyman import ToolSpecification, tool

Status = Literal["pending", "in_progress", "completed"]
Priority = Literal["low", "medium", "high", "critical"]
Sort = Literal["eta_asc", "priority_desc", "created_desc"]
Day = Annotated[str, Field(json_schema_extra={"format": "date"})]
TaskReference = str


@tool(read_only=True)
def get_current_time(timezone: str | None = None) -> str:
    """Get the current date and time. Use to tell what time it is.

    Args:
        timezone: An IANA time zone, e.g. "Europe/Berlin"; only when the user names one.
    """
    raise NotImplementedError


@tool
def create_task(
    title: str,
    description: str | None = None,
    priority: Priority | None = None,
    eta: Day | None = None,
    tags: list[str] | None = None,
) -> dict[str, str]:
    """Create a new task. Use to add a task or to put something on the task list.

    Args:
        title: What is to be done, in the user's words.
        description: More details; only when the user gives them.
        priority: How important it is; only when the user says so.
        eta: The day it is due; only when the user says when.
        tags: Labels; only when the user names tags.
    """
    raise NotImplementedError


@tool(read_only=True)
def query_tasks(
    text: str | None = None,
    status: Status | None = None,
    priority: Priority | None = None,
    due_after: Day | None = None,
    due_before: Day | None = None,
    tags: list[str] | None = None,
    sort: Sort | None = None,
    limit: int | None = None,
    format: Literal["concise", "standard", "detailed"] | None = None,
) -> list[dict[str, str]]:
    """List tasks. Use to show tasks: all, or those with a status, priority, tag or due date, or sorted.

    Args:
        text: Words in the title or the description.
        status: Only tasks with this status.
        priority: Only tasks with this priority.
        due_after: Only tasks due on or after this day.
        due_before: Only tasks due on or before this day.
        tags: Only tasks with these tags.
        sort: The order: eta_asc by due date, priority_desc by priority, created_desc by age.
        limit: How many tasks at most.
        format: How much of each task is shown; detailed for all details.
    """
    raise NotImplementedError


@tool(read_only=True)
def search_tasks(query: str, limit: int | None = None) -> list[dict[str, str]]:
    """Search tasks by meaning. Use to find tasks about a topic.

    Args:
        query: What the tasks are about.
        limit: How many tasks at most.
    """
    raise NotImplementedError


@tool
def update_task(
    task: TaskReference,
    title: str | None = None,
    description: str | None = None,
    status: Status | None = None,
    priority: Priority | None = None,
    eta: Day | None = None,
    tags: list[str] | None = None,
) -> dict[str, str]:
    """Change an existing task. Use to rename, tag, start or complete it, or to set its status, priority or due date.

    Args:
        task: The task's number or words of its title.
        title: The new title, to rename the task.
        description: The new description text.
        status: The new status; done or finished means completed.
        priority: The new priority.
        eta: The new due day.
        tags: The new tags, to tag the task.
    """
    raise NotImplementedError


@tool
def delete_task(task: TaskReference) -> dict[str, str]:
    """Delete a task. Use to remove a task for good.

    Args:
        task: The task's number or words of its title.
    """
    raise NotImplementedError


@tool(read_only=True)
def list_attachments(task: TaskReference) -> list[dict[str, str]]:
    """Show what is attached to one task. Use to get the attachments, files and links of a task.

    Args:
        task: The task's number or words of its title.
    """
    raise NotImplementedError


@tool
def add_attachment(reference: str, task: TaskReference) -> dict[str, str]:
    """Attach a URL to a task. Use only when the request contains a URL.

    Args:
        reference: The URL, which starts with http.
        task: The task's number or words of its title.
    """
    raise NotImplementedError


@tool
def delete_attachment(attachment: str, task: TaskReference) -> dict[str, str]:
    """Delete an attachment of a task. Use to remove or detach a file or link from a task.

    Args:
        attachment: The attachment's number, name or URL.
        task: The task's number or words of its title.
    """
    raise NotImplementedError


TOOLS: tuple[ToolSpecification, ...] = tuple(
    made.specification
    for made in (
        create_task,
        query_tasks,
        search_tasks,
        update_task,
        delete_task,
        list_attachments,
        add_attachment,
        delete_attachment,
        get_current_time,
    )
)
