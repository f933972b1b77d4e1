"""Pictures for tests, and what of them reached a model."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any


def png(colour: int = 0, width: int = 1) -> bytes:
    """A small picture; other colours are other bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, 1, 8, 2, 0, 0, 0)
    row = b"\0" + bytes([colour, 0, 0]) * width
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row, 9)) + chunk(b"IEND", b"")


PDF = b"%PDF-1.4\n1 0 obj <<>> endobj\ntrailer <<>>\n%%EOF\n"
WAV = (
    b"RIFF"
    + struct.pack("<I", 36)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data\0\0\0\0"
)


def url(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def seen(body: dict[str, Any]) -> list[bytes]:
    """The pictures in a request to an OpenAI-compatible server, in order."""
    parts = [part for said in body["messages"] if isinstance(said["content"], list) for part in said["content"]]
    found = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(each.partition(",")[2], validate=True) for each in found]


def told(body: dict[str, Any]) -> str:
    """All texts in it."""
    texts = []
    for said in body["messages"]:
        content = said["content"] or ""
        texts += [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]
    return "\n".join(texts)
