"""Server-sent events, as they arrive: bytes in, the data of whole events out. Knows nothing of what they mean."""

from __future__ import annotations


class EventParser:
    """Feed it what came over the wire, in pieces of any size.

    Works on bytes, so a piece may end in the middle of a character. Comments, event names and ids are dropped.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that this piece completes."""
        if self._after_return and piece:
            # The last piece ended in "\r", which already ended its line: a "\n" now belongs to it.
            self._after_return = False
            piece = piece.removeprefix(b"\n")
        if not piece:
            return []
        self._pieces.append(piece)
        if b"\n" not in piece and b"\r" not in piece:
            return []
        lines = b"".join(self._pieces).splitlines(keepends=True)
        self._pieces.clear()
        if not lines[-1].endswith((b"\n", b"\r")):
            self._pieces.append(lines.pop())
        self._after_return = piece.endswith(b"\r")
        return [data for line in lines if (data := self._line(line.rstrip(b"\r\n"))) is not None]

    def finish(self) -> list[bytes]:
        """The data of an event that the end of the stream left without its empty line."""
        found = [*self.feed(b"\n"), *self.feed(b"\n")]
        self._after_return = False
        return found

    def _line(self, line: bytes) -> bytes | None:
        if not line:
            data, self._data = self._data, []
            return b"\n".join(data) if data else None
        field, _, value = line.partition(b":")
        if field.removeprefix(b"\xef\xbb\xbf") == b"data":
            self._data.append(value.removeprefix(b" "))
        return None
