"""What calls of the tasks toolkit came to, in one sentence for people, and a table where there are several things."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from journeyman.tools.rendering import plain, sentence, table

_COLUMNS = {"id": "Id", "title": "Title", "eta": "Due", "priority": "Priority", "status": "Status", "tags": "Tags"}
NAME_WIDTH = 120


def added(arguments: dict[str, Any], task: dict[str, Any]) -> str:
    """What was put on the list."""
    facts = [f"*{name_of(task)}*"]
    if task.get("eta"):
        facts.append(f"due {_day(task['eta'])}")
    if task.get("priority") not in (None, "medium"):
        facts.append(f"{task['priority']} priority")
    if task.get("tags"):
        facts.append(f"tagged {', '.join(map(plain, task['tags']))}")
    if count := len(task.get("attachments") or ()):
        facts.append(f"with {_counted(count, 'attachment')}")
    return f"Added {', '.join(facts)}."


def found(arguments: dict[str, Any], result: dict[str, Any]) -> str:
    """The tasks that a query gave, and by what it asked."""
    tasks, total = result["tasks"], result["total"]
    filters = result.get("filters") or {}
    what = f"{plain(filters['status']).replace('_', ' ')} task" if filters.get("status") else "task"
    what = f"overdue {what}" if filters.get("overdue") else what
    by = _filters_in_words(filters)
    if not tasks:
        return f"No {what}s{by}." if filters else "There are no tasks."
    left = f"\n\n… and {total - len(tasks):,} more." if total > len(tasks) else ""
    return f"{_counted(total, what)}{by}:\n\n{_task_table(tasks)}{left}"


def fitting(arguments: dict[str, Any], result: dict[str, Any]) -> str:
    """The tasks that a search gave."""
    about = f"about *{plain(arguments['query'], width=NAME_WIDTH)}*"
    tasks = result["tasks"]
    return f"{_counted(len(tasks), 'task')} {about}:\n\n{_task_table(tasks)}" if tasks else f"No task is {about}."


def changed(arguments: dict[str, Any], task: dict[str, Any]) -> str:
    """What is different now."""
    previous = dict(task.get("previous") or {})
    if not previous:
        return f"*{name_of(task)}* was like that already."
    parts = []
    if "title" in previous:
        parts.append(f"renamed *{plain(previous.pop('title'), width=NAME_WIDTH)}* to *{name_of(task)}*")
    if "status" in previous:
        previous.pop("status")
        parts.append(f"marked *{name_of(task)}* as {task['status'].replace('_', ' ')}")
    if previous:
        changes = ", ".join(_change(field, before, task.get(field)) for field, before in previous.items())
        parts.append(f"changed {changes}" if parts else f"changed *{name_of(task)}*: {changes}")
    return sentence("; ".join(parts))


def deleted(arguments: dict[str, Any], result: dict[str, Any]) -> str:
    return f"Deleted *{name_of(result['deleted'])}*."


def attachments(arguments: dict[str, Any], result: dict[str, Any]) -> str:
    task, items = f"*{plain(result['task_title'], width=NAME_WIDTH)}*", result["attachments"]
    if not items:
        return f"{task} has no attachments."
    rows = ([plain(item.get("title") or item["type"], width=NAME_WIDTH), plain(item["reference"])] for item in items)
    return f"{_counted(len(items), 'attachment')} of {task}:\n\n{table(['Title', 'Link'], rows)}"


def attached(arguments: dict[str, Any], attachment: dict[str, Any]) -> str:
    return f"Attached {_link(attachment)}{_to_task(arguments)}."


def detached(arguments: dict[str, Any], result: dict[str, Any]) -> str:
    return f"Removed the attachment {_link(result['deleted'])}."


def refreshed(arguments: dict[str, Any], attachment: dict[str, Any]) -> str:
    return f"Fetched {_link(attachment)} anew."


# --- words


def name_of(task: dict[str, Any]) -> str:
    return plain(task["title"], width=NAME_WIDTH)


def _day(eta: str) -> str:
    """A day near by its name, and the time where there is one: a plain date is midnight."""
    when = datetime.fromisoformat(eta)
    days = (when.date() - datetime.now(when.tzinfo).date()).days
    match days:
        case -1:
            day = "yesterday"
        case 0:
            day = "today"
        case 1:
            day = "tomorrow"
        case _ if 1 < days < 7:
            day = f"on {when:%A}"
        case _:
            day = f"on {when.day} {when:%B %Y}"
    return f"{day} at {when:%H:%M}" if when.hour or when.minute else day


def _task_table(tasks: list[dict[str, Any]]) -> str:
    named = any(task.get("title") for task in tasks)  # the concise form has ids alone
    columns = [name for name in _COLUMNS if any(task.get(name) for task in tasks) and (name != "id" or not named)]
    return table([_COLUMNS[name] for name in columns], ([_cell(name, task) for name in columns] for task in tasks))


def _cell(name: str, task: dict[str, Any]) -> str:
    value = task.get(name)
    if not value:
        return "–"
    match name:
        case "eta":
            return _day(value).removeprefix("on ")
        case "tags":
            return ", ".join(map(plain, value))
        case _:
            return plain(value.replace("_", " ") if name == "status" else value, width=NAME_WIDTH)


def _filters_in_words(filters: dict[str, Any]) -> str:
    said = {"priority": " with {} priority", "tags": " tagged {}", "text": " with *{}*"}
    said |= {"due_after": " due from {}", "due_before": " due by {}"}
    return "".join(form.format(_value(name, filters[name])) for name, form in said.items() if filters.get(name))


def _change(field: str, before: Any, after: Any) -> str:
    name = {"eta": "due date"}.get(field, field)
    if field == "description":
        return f"{name} {'removed' if not after else 'set' if not before else 'rewritten'}"
    return f"{name} {_value(field, before)} → {_value(field, after)}"


def _value(field: str, value: Any) -> str:
    if not value:
        return "none"
    if field == "eta":
        return _day(value).removeprefix("on ")
    return ", ".join(map(plain, value)) if isinstance(value, list | tuple) else plain(str(value), width=NAME_WIDTH)


def _link(attachment: dict[str, Any]) -> str:
    title, reference = attachment.get("title"), plain(attachment["reference"])
    return f"*{plain(title, width=NAME_WIDTH)}* ({reference})" if title else reference


def _to_task(arguments: dict[str, Any]) -> str:
    """By which words the task was named, unless that was its id."""
    named = str(arguments.get("task_id") or "")
    return "" if not named or named.startswith("task_") else f" to *{plain(named, width=NAME_WIDTH)}*"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
