"""Which task, or which attachment of it, somebody means: by its id or by words of its title. Never guesses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.core.tasks import Attachment, Task, TaskFilter, TaskStore
from journeyman.retrieval.bm25 import terms
from journeyman.toolkits.tasks.references import InvalidReferenceError, read_reference

MOST_LISTED = 10
NEAREST = 3
_CANDIDATES = 200
_RECENT = 200
_SAY_NOTHING = frozenset({"task", "todo", "item"})
"""In "the milk task" only the milk tells one task from another."""


async def named_task(store: TaskStore, name: str) -> Task:
    """The one task that is meant. Raises TASK_NOT_FOUND or AMBIGUOUS_TASK."""
    task = await store.get(name.strip())
    if task is not None:
        return task
    wanted = _telling(name)
    candidates = await _with_words(store, wanted) if wanted else []
    exact = [task for task in candidates if _plain(task.title) == _plain(name)]
    chosen = exact or candidates
    if len(chosen) == 1:
        return chosen[0]
    raise _ambiguous_task(name, chosen) if chosen else await no_task(store, name)


def named_attachment(task: Task, name: str) -> Attachment:
    """The one attachment of a task that is meant: by id, address, or words of its title or address."""
    try:
        address = read_reference(name).url
    except InvalidReferenceError:
        address = None
    for attachment in task.attachments:
        if name.strip() == attachment.id or address == attachment.reference:
            return attachment
    wanted = set(terms(name))
    found = [item for item in task.attachments if wanted and wanted <= set(terms(f"{item.title} {item.reference}"))]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(f"{item.id}: {item.reference}" for item in (found or task.attachments)[:MOST_LISTED]) or "none"
    if found:
        raise ToolError(
            "AMBIGUOUS_ATTACHMENT",
            f"{name!r} fits {len(found)} attachments: {listed}",
            category=ErrorCategory.INVALID_INPUT,
            recover_action="Ask the user which one is meant, then give its id",
        )
    raise no_attachment(name, f"task {task.title!r} has: {listed}")


def no_attachment(name: str, known: str) -> ToolError:
    """ATTACHMENT_NOT_FOUND, with what may help."""
    return ToolError(
        "ATTACHMENT_NOT_FOUND",
        f"there is no attachment {name!r}; {known}",
        category=ErrorCategory.INVALID_INPUT,
        recover_action="Call list_attachments with the task, then use an id from there",
    )


def _telling(name: str) -> list[str]:
    found = terms(name)
    return [word for word in found if word not in _SAY_NOTHING] or found


async def _with_words(store: TaskStore, wanted: Sequence[str]) -> list[Task]:
    # The database looks for pieces of words ("compan" for company and companies), and whole words are left.
    pieces = " ".join(word.removesuffix("y") for word in wanted)
    page = await store.find(TaskFilter(title=pieces), limit=_CANDIDATES)
    return [task for task in page.tasks if set(wanted) <= set(terms(task.title))]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _ambiguous_task(name: str, tasks: Sequence[Task]) -> ToolError:
    more = f", and {len(tasks) - MOST_LISTED} more" if len(tasks) > MOST_LISTED else ""
    return ToolError(
        "AMBIGUOUS_TASK",
        f"{name!r} fits {len(tasks)} tasks: {_listed(tasks[:MOST_LISTED])}{more}",
        category=ErrorCategory.INVALID_INPUT,
        recover_action="Ask the user which one is meant, then give its id",
    )


async def no_task(store: TaskStore, name: str) -> ToolError:
    """TASK_NOT_FOUND, with the tasks that may have been meant."""
    recent = (await store.find(limit=_RECENT)).tasks
    near = sorted(recent, key=lambda task: _likeness(name, task.title), reverse=True)[:NEAREST]
    hint = f"the nearest are {_listed(near)}" if near else "there are no tasks yet"
    return ToolError(
        "TASK_NOT_FOUND",
        f"there is no task {name!r}; {hint}",
        category=ErrorCategory.INVALID_INPUT,
        recover_action="Use one of these ids if the user means that task; otherwise look with query_tasks, or ask",
    )


def _likeness(name: str, title: str) -> float:
    asked, there = set(terms(name)), set(terms(title))
    shared = len(asked & there) / len(asked) if asked else 0.0
    return shared + SequenceMatcher(None, _plain(name), _plain(title)).ratio()


def _listed(tasks: Iterable[Task]) -> str:
    return "; ".join(f"{task.id}: {task.title!r} ({task.status.value})" for task in tasks)
