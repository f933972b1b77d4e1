"""What is asked in a window of its own: why somebody refuses a call, and what is to be run instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from journeyman.core.approvals import Approval
from journeyman.core.data import exact_json
from journeyman.doors.slack.posts import ACTION, LONGEST_REASON, editable

REASON = "reason"
LONGEST_HINT, LONGEST_CHOICE, MOST_CHOICES = 150, 75, 100
SHORT = 80
"""Characters of a value that is edited in one line."""


class WrongFieldError(ValueError):
    """What somebody wrote into a field cannot be meant; ``field`` is its block."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def refusal_view(approval: Approval) -> dict[str, Any]:
    """Asks for the reason of a refusal."""
    field = _field(REASON, "Why not?", "", optional=True, hint="The assistant is told, and tries to do without.")
    field["element"]["max_length"] = LONGEST_REASON
    return _view("deny", "Refuse this call", "Deny", approval, [field])


def edit_view(approval: Approval) -> dict[str, Any] | None:
    """Asks for what to run instead, a field for each argument; None where they do not fit."""
    given = approval.arguments
    if approval.question is not None:
        return _view("edit", "Answer", "Send", approval, _form_fields(approval.question.form, given))
    if not editable(given):
        return None
    fields = [
        _field(f"{number}", name, _as_text(value), optional=value is None or value == "")
        for number, (name, value) in enumerate(given.items())
    ]
    return _view("edit", "Change and approve", "Approve", approval, fields)


def _form_fields(form: Mapping[str, Any], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    required, fields = form.get("required") or (), []
    for number, (name, value) in enumerate(given.items()):
        schema = form["properties"][name]
        hint, label = str(schema.get("description", ""))[:LONGEST_HINT], str(schema.get("title") or name)
        made = _field(f"{number}", label, _as_text(value), optional=name not in required, hint=hint)
        if choices := _choices(schema):
            # By their numbers: values may be long, alike or empty.
            options = [{"text": _plain(_label(choice)), "value": f"{at}"} for at, choice in enumerate(choices)]
            element = {"type": "static_select", "action_id": f"{ACTION}field", "options": options}
            made["element"] = element | ({"initial_option": options[choices.index(value)]} if value in choices else {})
        fields.append(made)
    return fields


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    """What a field is chosen from; nothing where it is written, or they are too many for a list."""
    choices = [True, False] if schema.get("type") == "boolean" else schema.get("enum")
    return choices if isinstance(choices, list) and len(choices) <= MOST_CHOICES else []


def _label(choice: Any) -> str:
    text = _as_text(choice).strip() or "–"
    return text if len(text) <= LONGEST_CHOICE else f"{text[:36]}…{text[-38:]}"


def edited(approval: Approval, written: Mapping[str, str]) -> dict[str, Any]:
    """The arguments as somebody has written them. Raises WrongFieldError."""
    fields = {} if approval.question is None else approval.question.form["properties"]
    arguments = {}
    for number, (name, value) in enumerate(approval.arguments.items()):
        choices, text = _choices(fields.get(name, {})), written.get(f"{number}", "")
        arguments[name] = choices[int(text)] if choices and text else _as_value(value, text, f"{number}")
    return arguments


def written(view: Mapping[str, Any]) -> dict[str, str]:
    """What stands in the fields of a view that was sent, by block."""
    values = (view.get("state") or {}).get("values") or {}
    return {block: _entered(next(iter(held.values()))) for block, held in values.items() if held}


def _entered(field: Mapping[str, Any]) -> str:
    return str(field.get("value") or (field.get("selected_option") or {}).get("value") or "")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else exact_json(value)


def _as_value(before: Any, text: str, field: str) -> Any:
    """A text is taken as it is where one stood there; all else is JSON, so that a number stays one."""
    if isinstance(before, str) or text == _as_text(before):
        return text if isinstance(before, str) else before
    try:
        return from_json(text)
    except ValueError:
        if before is None:
            return text
        raise WrongFieldError(field, f"Write it as JSON, as it was: {_as_text(before)[:100]}") from None


def _field(block: str, label: str, value: str, *, optional: bool, hint: str = "") -> dict[str, Any]:
    element: dict[str, Any] = {"type": "plain_text_input", "action_id": f"{ACTION}field"}
    element["multiline"] = len(value) > SHORT or "\n" in value or block == REASON
    if value:
        element["initial_value"] = value
    made = {
        "type": "input",
        "block_id": block,
        "label": _plain(label[:150].strip() or "?"),
        "element": element,
        "optional": optional,
    }
    return made | ({"hint": _plain(hint)} if hint else {})


def _view(kind: str, title: str, submit: str, approval: Approval, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    about = f"{approval.about or approval.tool_name}"[:300]
    return {
        "type": "modal",
        "callback_id": f"{ACTION}{kind}",
        "private_metadata": approval.id,
        "title": _plain(title),
        "submit": _plain(submit),
        "close": _plain("Back"),
        "blocks": [{"type": "section", "block_id": "about", "text": _plain(about)}, *blocks],
    }


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}
