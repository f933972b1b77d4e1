"""Where the arguments of a call came from, as data. How that is found out is in ``execution.grounding``."""

from __future__ import annotations

import re
from typing import Any, Literal

from journeyman.core.data import Entity

Origin = Literal["request", "history", "result", "system", "default", "enum", "person", "computed", "nowhere"]
"""What a value was found in. ``computed`` is free text, a date, a quantity: what a model may write by itself.
``nowhere`` is an identifier that stands in nothing that was said before the call: it is *ungrounded*."""


SAID = "said"
"""In the metadata of a task: what was said where the calls of a chain come from, as far as a door was told."""


class ArgumentSource(Entity):
    """Where the value of one argument came from."""

    argument: str
    """Its place among the arguments, e.g. ``order_id`` or ``items[0].sku``."""
    origin: Origin
    call_id: str | None = None
    """The earlier call in whose result it stands, for the origin ``result``."""
    tool_name: str | None = None
    """That call's tool."""

    @property
    def text(self) -> str:
        """For people, e.g. on the card of an approval."""
        return f"result of {self.tool_name}" if self.origin == "result" else WORDS[self.origin]


WORDS: dict[Origin, str] = {
    "request": "the request",
    "history": "the conversation before",
    "result": "an earlier result",
    "system": "the agent's instruction",
    "default": "the tool's default",
    "enum": "the tool's list of values",
    "person": "the person who approved",
    "computed": "written by the model",
    "nowhere": "found nowhere: may be invented",
}


def ungrounded(sources: tuple[ArgumentSource, ...] | None) -> tuple[str, ...]:
    """The arguments whose values are identifiers that stand nowhere."""
    for item in sources or ():
        if item.origin == "nowhere":
            return tuple(item.argument for item in sources or () if item.origin == "nowhere")
    return ()  # as nearly always


def value_at(arguments: dict[str, Any], path: str) -> Any:
    """The value that an ``ArgumentSource`` is about; None where there is none."""
    value: Any = arguments
    for key, index in _steps(path):
        if isinstance(value, dict) and key:
            value = value.get(key)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return None
    return value


_steps = re.compile(r"([^.\[\]]+)(?!\])|\[(\d+)\]").findall
