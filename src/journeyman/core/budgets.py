"""How much is taken from outside: from models, servers, tools and documents. ``docs/limits.md`` lists every limit.

Over a budget is an answer that names the limit, never a stall. What an operator may want to change is a field of
``Policy``, ``Limits`` or ``ServeOptions`` instead.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable

ANSWER_BYTES = 8_000_000
"""Of one answer of a model: the body after decompression or, of a stream, its texts and arguments together."""
STREAM_BYTES = 64_000_000
"""Of one streamed answer after decompression, with all that a server writes around each word of it."""
STREAM_EVENTS = 500_000
"""Pieces of one streamed answer."""
EVENT_BYTES = 2_000_000
"""Of one event of a streamed answer that a provider's own SDK reads."""
EVENT_LINES = 2_000
"""Of such an event."""
TURN_CALLS = 128
"""Calls that a model may ask for in one turn."""
TOOL_NAME_CHARS = 128
"""Of a tool's name; a longer one that a model writes names no tool."""
ERROR_BYTES = 16_000
"""Of what a server says where it refuses; no more is read."""
VECTORS_BYTES = 32_000_000
"""Of one answer of a server that makes vectors."""
JSON_CONTAINERS = 100_000
"""Lists and objects in one JSON text; each costs far more than its two characters."""
ARGUMENT_CONTAINERS = 10_000
"""Lists and objects in the arguments of a call, or in a request over HTTP: each is looked at on the event loop."""
ARGUMENT_VALUES = 20_000
"""Values in them."""
LISTED_PROBLEMS = 1_000
"""Wrong values up to which each is looked at; of more only the number is told."""
BACKTRACKING_CHARS = 8_000
"""Of arguments where a schema from outside has a pattern that only a backtracking engine can match."""
OUTPUT_SCHEMA_BYTES = 100_000
"""Of the JSON Schema of an agent's answers."""
OUTPUT_SCHEMA_PARTS = 2_000
"""Schemas in it, with a copy of its target in the place of each reference: a few lines can stand for millions."""
GRAM_CHARS = 1_000_000
"""Of one gram document."""
SEARCHED_CHARS = 20_000
"""Of a text that is looked for or is to be found: its beginning counts, the rest does not."""
LARGE_TEXT = 20_000
"""Characters from which on a text is worked on in a thread, so that the event loop goes on meanwhile."""
SLICE_BYTES = 32_000
"""Of a stream that is worked on before others get a turn."""

MCP_MESSAGE_BYTES = 4_000_000
"""Of one message of an MCP server, before it is parsed."""
MCP_CONTAINERS = 20_000
"""Lists and objects in one message of an MCP server."""
MCP_VALUES = 100_000
"""Values in one message of an MCP server: checking them against the protocol takes the event loop's time."""
MCP_ITEMS = 1_000
"""Entries of one list in a message of an MCP server: tools on a page, pieces of a result."""
MCP_TOOLS = 2_000
"""Tools of one MCP server, on all pages together."""
MCP_PAGES = 100
"""Pages of one list of an MCP server."""
MCP_SCHEMA_BYTES = 100_000
"""Of the schemas of one tool of an MCP server."""
MCP_DESCRIPTION_CHARS = 8_000
"""Of the description of a tool of an MCP server; the rest is cut off."""
MCP_UNASKED = 200
"""Notifications and requests that an MCP server may send in a second; more are dropped."""
MCP_STRAY_BYTES = 1_000_000
"""That an MCP server may write to its standard output beside the protocol."""
MCP_STDERR_BYTES = 2_000
"""Of the end of an MCP server's standard error, kept to explain why it failed."""


class OverBudgetError(ValueError):
    """More came from outside than is taken. The message names the limit."""


def check_containers(text: str | bytes) -> None:
    """Refuse JSON text that takes long to read although it is short. Raises OverBudgetError."""
    if len(text) <= JSON_CONTAINERS:
        return
    opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if opened > JSON_CONTAINERS:
        raise OverBudgetError(f"has more than {JSON_CONTAINERS:,} lists and objects")


def check_arguments(text: str | bytes) -> None:
    """The same for the JSON text of a call's arguments, or of a request. Raises OverBudgetError."""
    if len(text) > ARGUMENT_CONTAINERS:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if (over := too_many(data, containers=ARGUMENT_CONTAINERS, values=ARGUMENT_VALUES)) is not None:
            raise OverBudgetError(f"has more than {over}")


_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


def too_many(text: bytes, *, containers: int, values: int) -> str | None:
    """What a JSON text has too many of; brackets and commas inside of texts do not count."""
    found = _counted(text)
    if found[0] > containers or found[1] > values:
        found = _counted(_TEXT.sub(b"", text))
    if found[0] > containers:
        return f"{containers:,} lists and objects"
    return f"{values:,} values" if found[1] > values else None


def _counted(text: bytes) -> tuple[int, int]:
    containers = text.count(b"[") + text.count(b"{")
    return containers, containers + text.count(b",")


async def read_at_most(pieces: AsyncIterable[bytes], most: int) -> tuple[bytes, bool]:
    """The first ``most`` bytes of a body, and whether that is all of it. The rest is not read."""
    kept: list[bytes] = []
    left = most
    async for piece in pieces:
        kept.append(piece[:left])
        left -= len(piece)
        if left < 0:
            return b"".join(kept), False
    return b"".join(kept), True
