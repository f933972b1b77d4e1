"""The tools every contender offers: real functions with annotations and docstrings, and their schemas by hand.

The hand-written schemas are the floor's alone; frameworks make their own from the functions.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def filler(number: int) -> Function:
    """A tool nobody calls; it is there to be described to the model at every step."""

    async def lookup(key: str, limit: int = 10) -> str:
        """Look up a record of one department.

        Args:
            key: The record's key, as printed on the form.
            limit: How many lines to return at most.
        """
        return f"{key} {limit}"

    lookup.__name__ = lookup.__qualname__ = f"lookup_{number}"
    return lookup


def toolbox(*, count: int, marks: list[float] | None = None, hangs: bool = False) -> list[Function]:
    """`count` tools, the first three of which are called; `marks` gets the CPU time at each call of `add`.

    With `hangs` there is one more, which never returns.
    """

    async def add(a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: The first number.
            b: The second number.
        """
        if marks is not None:
            marks.append(time.process_time())
        return a + b

    async def nap(milliseconds: int, slot: int) -> int:
        """Wait without blocking.

        Args:
            milliseconds: How long to wait.
            slot: The number of this call within its turn.
        """
        await asyncio.sleep(milliseconds / 1000)
        return slot

    def nap_sync(milliseconds: int, slot: int) -> int:
        """Wait and block the thread.

        Args:
            milliseconds: How long to wait.
            slot: The number of this call within its turn.
        """
        time.sleep(milliseconds / 1000)
        return slot

    async def hang(a: int, b: int) -> int:
        """Wait for ever.

        Args:
            a: The first number.
            b: The second number.
        """
        await asyncio.Event().wait()
        return a + b

    return [add, nap, nap_sync, *map(filler, range(count - 3)), *([hang] if hangs else [])]


def schemas(functions: list[Function]) -> list[dict[str, Any]]:
    """The OpenAI `tools` list, as a person would write it."""
    add = {
        "a": {"type": "integer", "description": "The first number."},
        "b": {"type": "integer", "description": "The second number."},
    }
    nap = {
        "milliseconds": {"type": "integer", "description": "How long to wait."},
        "slot": {"type": "integer", "description": "The number of this call within its turn."},
    }
    lookup = {
        "key": {"type": "string", "description": "The record's key, as printed on the form."},
        "limit": {"type": "integer", "default": 10, "description": "How many lines to return at most."},
    }
    properties: dict[str, dict[str, Any]] = {"add": add, "hang": add, "nap": nap, "nap_sync": nap}
    return [
        {
            "type": "function",
            "function": {
                "name": function.__name__,
                "description": (function.__doc__ or "").splitlines()[0],
                "parameters": {
                    "type": "object",
                    "properties": properties.get(function.__name__, lookup),
                    "required": ["key"]
                    if function.__name__.startswith("lookup")
                    else list(properties[function.__name__]),
                },
            },
        }
        for function in functions
    ]
