"""Reads what people and models write: the values of a task's fields, and which task or attachment they mean.

What cannot be read is refused with the error codes that the tools' descriptions name. Nothing is guessed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from journeyman.core.errors import ToolError
from journeyman.core.tasks import Attachment, Task, TaskFilter, TaskPriority, TaskSort, TaskStatus
from journeyman.retrieval.search import terms
from journeyman.toolkits import invalid
from journeyman.toolkits.tasks.references import LONGEST as LONGEST_REFERENCE
from journeyman.toolkits.tasks.references import InvalidReferenceError, read_reference

if TYPE_CHECKING:
    from journeyman.stores.tasks import SqlTasks

E = TypeVar("E", bound=StrEnum)

LONGEST_TITLE = 255
LONGEST_NAME = 1_000
"""Characters by which a task is named; every title fits, with words around it."""
LONGEST_TAG = 64
MOST_TAGS = 50

_STATUS_SYNONYMS = dict.fromkeys(("done", "complete", "finished"), "completed")
_STATUS_SYNONYMS |= {"todo": "pending", "open": "pending", "doing": "in_progress", "started": "in_progress"}

MOST_NAMED = 10
"""How many tasks or attachments an error message lists."""
_NEAREST = 3
_CANDIDATES = 200
_ASK = "Ask the user which one is meant, then give its id"
_GENERIC_WORDS = frozenset({"task", "todo", "item"})
"""In "the milk task" only the milk tells one task from another."""

# --- the values of fields


def read_title(text: str) -> str:
    """A title in one line. Raises INVALID_TITLE."""
    title = " ".join(text.split())
    if not title:
        raise invalid("INVALID_TITLE", f"the title {text!r} is empty", "Give a title of 1 to 255 characters")
    if len(title) > LONGEST_TITLE:
        message = f"Title too long: {len(title)} characters (max {LONGEST_TITLE})"
        recover = f"Truncate title to {LONGEST_TITLE} characters and retry; the rest belongs into the description"
        raise invalid("INVALID_TITLE", message, recover)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in title):
        message = f"the title {title!r} has control characters in it"
        raise invalid("INVALID_TITLE", message, "Use letters, digits and punctuation")
    return title


def read_priority(text: str) -> TaskPriority:
    """Raises INVALID_PRIORITY."""
    return _one_of(TaskPriority, text, "INVALID_PRIORITY", "priority")


def read_status(text: str) -> TaskStatus:
    """Raises INVALID_STATUS."""
    return _one_of(TaskStatus, _STATUS_SYNONYMS.get(_folded(text), text), "INVALID_STATUS", "status")


def read_sort(text: str) -> TaskSort:
    """Raises INVALID_SORT."""
    return _one_of(TaskSort, text, "INVALID_SORT", "sort order")


def _one_of(kind: type[E], text: str, code: str, what: str) -> E:
    try:
        return kind(_folded(text))
    except ValueError:
        raise invalid(code, f"Invalid {what}: {text}", f"Use one of: {', '.join(kind)}") from None


def _folded(text: str) -> str:
    return "_".join(text.strip().lower().replace("-", " ").split())


def read_eta(text: str, *, end_of_day: bool = False) -> datetime:
    """A date and time in ISO 8601, its time zone kept, UTC where it has none. Raises INVALID_ETA.

    A plain date is the beginning of that day, or with ``end_of_day`` its end.
    """
    written = text.strip()
    try:
        when = datetime.fromisoformat(written)
        if end_of_day:
            with suppress(ValueError):  # not a plain date
                when = datetime.combine(date.fromisoformat(written), time.max)
        offset = when.utcoffset()
        if offset is not None and offset.total_seconds() % 60:
            raise ValueError("no time zone is off by seconds")
    except ValueError:
        recover = "Write a date as 2027-01-31 or a time as 2027-01-31T17:00:00+01:00; work out 'tomorrow' first"
        raise invalid("INVALID_ETA", f"{text!r} is no date or time in ISO 8601", recover) from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def read_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without spaces around them, each once whatever its case. Raises INVALID_TAGS."""
    read: dict[str, str] = {}
    for tag in tags:
        tidy = " ".join(tag.split()).removeprefix("#")
        if not 1 <= len(tidy) <= LONGEST_TAG:
            raise invalid("INVALID_TAGS", f"{tag!r} is no tag", f"Use tags of 1 to {LONGEST_TAG} characters")
        read.setdefault(tidy.casefold(), tidy)
    if len(read) > MOST_TAGS:
        raise invalid("INVALID_TAGS", f"there are {len(read)} tags", f"Use at most {MOST_TAGS} tags")
    return tuple(read.values())


# --- which task or attachment is meant


async def find_task(store: SqlTasks, name: str) -> Task:
    """The one task with this id or these words in its title. Raises TASK_NOT_FOUND or AMBIGUOUS_TASK."""
    if len(name) > LONGEST_NAME:
        raise _too_long("TASK_NOT_FOUND", name)
    task = await store.get(name.strip())
    if task is not None:
        return task
    words = terms(name)
    wanted = [word for word in words if word not in _GENERIC_WORDS] or words
    candidates = await _with_words(store, wanted) if wanted else []
    if not candidates and words and set(words) <= _GENERIC_WORDS:  # "my task" names none: an open one is meant
        page = await store.find(TaskFilter(), limit=_CANDIDATES)
        candidates = [task for task in page.tasks if task.status is not TaskStatus.COMPLETED]
    exact = [task for task in candidates if _plain(task.title) == _plain(name)]
    chosen = exact or candidates
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise await task_not_found(store, name)
    more = f", and {len(chosen) - MOST_NAMED} more" if len(chosen) > MOST_NAMED else ""
    recover = f"{_ASK}: {_listed(chosen[:MOST_NAMED])}{more}"
    guidance = f"Say which one: {_titles(chosen[:MOST_NAMED])}{more}"
    raise invalid("AMBIGUOUS_TASK", f"{name!r} fits {len(chosen)} tasks", recover, guidance=guidance)


def _too_long(code: str, name: str) -> ToolError:
    return invalid(code, f"{name[:60]!r}… has {len(name):,} characters and names nothing", "Use an id, or a few words")


def find_attachment(task: Task, name: str) -> Attachment:
    """The one attachment of a task with this id, this address, or these words in its title or address."""
    if len(name) > LONGEST_REFERENCE:
        raise _too_long("ATTACHMENT_NOT_FOUND", name)
    try:
        address = read_reference(name).url
    except InvalidReferenceError:
        address = None
    for attachment in task.attachments:
        if name.strip() == attachment.id or address == attachment.reference:
            return attachment
    wanted = set(terms(name))
    fitting = [item for item in task.attachments if wanted and wanted <= set(terms(f"{item.title} {item.reference}"))]
    if len(fitting) == 1:
        return fitting[0]
    listed = "; ".join(f"{item.id}: {item.reference}" for item in (fitting or task.attachments)[:MOST_NAMED]) or "none"
    if fitting:
        raise invalid("AMBIGUOUS_ATTACHMENT", f"{name!r} fits {len(fitting)} attachments: {listed}", _ASK)
    raise attachment_not_found(name, f"task {task.title!r} has: {listed}")


def attachment_not_found(name: str, hint: str) -> ToolError:
    recover = "Call list_attachments with the task, then use an id from there"
    return invalid("ATTACHMENT_NOT_FOUND", f"there is no attachment {name!r}; {hint}", recover)


async def _with_words(store: SqlTasks, wanted: Sequence[str]) -> list[Task]:
    # The database searches for parts of words ("compan" for company and companies); whole words are compared here.
    parts = " ".join(word.removesuffix("y") for word in wanted)
    page = await store.find(TaskFilter(title=parts), limit=_CANDIDATES)
    return [task for task in page.tasks if set(wanted) <= set(terms(task.title))]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


async def task_not_found(store: SqlTasks, name: str) -> ToolError:
    """Lists the recent tasks with the most similar titles."""
    name = name[:LONGEST_NAME]
    recent = (await store.find(limit=_CANDIDATES)).tasks
    near = sorted(recent, key=lambda task: _similarity(name, task.title), reverse=True)[:_NEAREST]
    if not near:
        return invalid("TASK_NOT_FOUND", f"there is no task {name!r}; there are no tasks yet", "Tell the user so")
    recover = (
        f"The nearest are {_listed(near)}. Use one of these ids if the user means that task; otherwise look with "
        "query_tasks, or ask"
    )
    guidance = f"The nearest are {_titles(near)}; say which one you mean"
    return invalid("TASK_NOT_FOUND", f"there is no task {name!r}", recover, guidance=guidance)


def _similarity(name: str, title: str) -> float:
    asked, there = set(terms(name)), set(terms(title))
    shared = len(asked & there) / len(asked) if asked else 0.0
    return shared + SequenceMatcher(None, _plain(name), _plain(title)).ratio()


def _titles(tasks: Iterable[Task]) -> str:
    """For people, who know tasks by their titles."""
    return ", ".join(f"“{task.title}”" for task in tasks)


def _listed(tasks: Iterable[Task]) -> str:
    return "; ".join(f"{task.id}: {task.title!r} ({task.status.value})" for task in tasks)
