"""What the demo plays: its folder, its tools, what the scripted model says, and what to look at in each step."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from journeyman.app import Tool, builtin_library, tool
from journeyman.core.messages import Role
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.testing.scripted import ScriptedCall, ScriptedModel, call, say, together

TASK = "Add up this week's orders, keep the total as a note, delete the old draft, and check the stock."
INSTRUCTION = "You keep the books of a small shop. Use the tools; never guess a number."
NOTES = "journeyman-notes"

ORDERS = "order,item,price,state\nW-15,lamp,19.90,paid\nW-16,chair,42.50,overdue\nW-17,desk,95.00,paid\n"
README = "Orders of the week are in orders.csv. An overdue order gets a reminder on Friday.\n"
TOTAL = "19.90 + 42.50 + 95.00"

NARRATION = {
    1: ("1 · A tool call", "The model asks; the call is checked, graded, run and recorded."),
    2: ("2 · Calls side by side", "Three calls in one turn run together; one that fails would not harm the others."),
    3: (
        "3 · Mistakes are answered",
        "Broken JSON and a tool that does not exist: the model is told what to do.",
    ),
    4: ("4 · … and corrected", "The same question again, this time as the schema wants it."),
    5: (
        "5 · Irreversible means: ask",
        "A new note is written at once. Deleting one for good waits for a person.",
    ),
    6: (
        "6 · A hanging tool",
        "It blocks for ever. After 1 s, its timeout, it is given up and the run goes on.",
    ),
}


def furnish(root: Path) -> None:
    """The files the job is about."""
    (root / "orders.csv").write_text(ORDERS, encoding="utf-8")
    (root / "readme.txt").write_text(README, encoding="utf-8")
    (root / NOTES).mkdir()
    (root / NOTES / "draft.md").write_text("Total: about 150?\n", encoding="utf-8")


def tools(root: Path) -> list[Tool[..., Any]]:
    return [*builtin_library(root), check_stock]


@tool(read_only=True, timeout_seconds=1)
def check_stock(warehouse: str) -> str:
    """Ask a warehouse what it has. Use when the user wants to know what is in stock.

    Args:
        warehouse: The warehouse's name.
    """
    threading.Event().wait()  # a service that never answers
    return "unreachable"


def script() -> ScriptedModel:
    return ScriptedModel(
        [
            thinking("I first look at what there is.", call("list_files")),
            thinking(
                "I need the orders, whatever is overdue, and today's date.",
                call("read_file", path="orders.csv"),
                call("search_text", text="overdue"),
                call("get_current_time"),
            ),
            thinking(
                "Now the total.",
                call("calculate_expression").raw('{"expression": "19.90 + 42.50 +'),
                call("calculator", expression=TOTAL),
            ),
            thinking("I write the arguments properly.", call("calculate_expression", expression=TOTAL)),
            thinking(
                "I keep the total and remove the draft.",
                call("write_note", title="weekly orders", text="Total of the week: 157.40\n"),
                call("delete_note", title="draft"),
            ),
            thinking("Last, the stock.", call("check_stock", warehouse="north")),
            closing,
        ]
    )


def thinking(text: str, *calls: ScriptedCall) -> ModelResponse:
    return together(*calls).model_copy(update={"text": text})


def closing(request: ModelRequest) -> ModelResponse:
    """The answer, which depends on what really happened."""
    told = {message.name: message.content for message in request.messages if message.role is Role.FUNCTION}
    deleted = "error" not in json.loads(told["delete_note"])
    draft = "The old draft is deleted." if deleted else "The old draft is still there: I was not allowed to delete it."
    return say(
        f"This week's three orders come to {float(told['calculate_expression']):.2f}; one, W-16, is overdue. The total "
        f"is in the note 'weekly orders'. {draft} The warehouse did not answer, so I cannot say what is in stock."
    )
