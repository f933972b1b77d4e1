"""The client's messages on standard input, one a line and none larger than it may be.

The package ``mcp`` would read a line of any size. One that is too large is dropped while it comes, and a request in its
place lets the server answer whoever waits for it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import anyio.to_thread

from journeyman.core.budgets import MCP_MESSAGE_BYTES

TOO_LARGE = "journeyman/too-large"
"""The method of the request in the place of one that was dropped."""
_CHUNK = 65_536
_HEAD = 400
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")')


@contextmanager
def own_input() -> Iterator[int]:
    """Standard input for us alone: tools, and programs that they start, find it empty meanwhile."""
    private = os.dup(0)
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        yield private
        os.dup2(private, 0)
    finally:
        os.close(private)


class BoundedLines:
    """Lines of text from a file descriptor, as they come."""

    def __init__(self, descriptor: int, *, most: int = MCP_MESSAGE_BYTES, chunk: int = _CHUNK) -> None:
        self._descriptor = descriptor
        self._most = most
        self._chunk = chunk

    async def __aiter__(self) -> AsyncIterator[str]:
        held = bytearray()
        dropped: bytes | None = None
        while chunk := await anyio.to_thread.run_sync(os.read, self._descriptor, self._chunk):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                held += piece
                if dropped is None and len(held) <= self._most:
                    yield held.decode("utf-8", "replace")
                elif (instead := _instead(dropped or bytes(held[:_HEAD]), bytes(held[-_HEAD:]))) is not None:
                    yield instead
                held, dropped = bytearray(), None
            held += rest
            if len(held) > self._most:
                dropped, held = dropped or bytes(held[:_HEAD]), held[-_HEAD:]
        if held and dropped is None:
            yield held.decode("utf-8", "replace")


def _instead(head: bytes, tail: bytes) -> str | None:
    """A request with the id of one that was dropped; None where it names none. Clients write it first, or last."""
    found = _ID.search(head) or next(iter([*_ID.finditer(tail)][-1:]), None)
    if found is None:
        return None
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(found[1]), "method": TOO_LARGE})
