"""What is said besides text: images, audio and documents, in messages and in results.

Each is a reference to an artifact of a run, or holds its bytes where no store keeps them. What it is goes by its first
bytes, never by what somebody calls it: nothing is decompressed or drawn to find out.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import Field

from journeyman.core.data import Entity, one_line
from journeyman.core.errors import InvalidDataError

MediaKind: TypeAlias = Literal["image", "audio", "document"]
Bytes: TypeAlias = bytes
"""Under a name that no field has."""

MEDIUM_BYTES = 10_000_000
"""Of one image, sound or document."""
MESSAGE_MEDIA = 16
"""In one message, or of one result to a model."""
REQUEST_MEDIA = 32
"""In one question to a model; of more the latest are sent, and the others told in words."""
REQUEST_MEDIA_BYTES = 20_000_000
"""The same in bytes, and what one message may hold."""
LONGEST_NAME = 120
UNKNOWN_TYPE = "application/octet-stream"
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models and pages take as a picture. Others, such as SVG, are documents: they may hold scripts."""
_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "application/pdf": (b"%PDF-",),
    "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "audio/ogg": (b"OggS",),
    "audio/flac": (b"fLaC",),
}
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
_DATA_URL = re.compile(r"data:([^;,]*)((?:;[^;,]*)*?)(;base64)?,", re.IGNORECASE)
_TEXTS = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})


def media_type(data: bytes, said: str = "", name: str = "") -> str:
    """What bytes are: by how they begin, else what they are said to be, unless their beginning would show it."""
    if data[:4] == b"RIFF" and data[8:12] in (b"WEBP", b"WAVE"):
        return "image/webp" if data[8:12] == b"WEBP" else "audio/wav"
    for kind, beginnings in _BEGINNINGS.items():
        if data.startswith(beginnings):
            return kind
    kind_said = said.partition(";")[0].strip().lower()
    if not kind_said:
        from mimetypes import guess_type  # reads files of the system: only where a name is all there is

        kind_said = guess_type(name)[0] or UNKNOWN_TYPE
    shows = kind_said in IMAGES or kind_said == "application/pdf" or kind_said.startswith("audio/")
    return UNKNOWN_TYPE if shows or not _TYPE.fullmatch(kind_said) else kind_said


class Medium(Entity):
    """An image, a sound or a document: its bytes in base64, or where a store keeps these."""

    kinds: ClassVar[tuple[MediaKind, ...]] = ("image", "audio", "document")

    mime_type: str
    bytes: int = Field(ge=0)
    name: str = Field(default="", exclude_if=lambda name: not name)
    data: str | None = Field(default=None, repr=False, exclude_if=lambda data: data is None)
    artifact: str | None = Field(default=None, exclude_if=lambda artifact: artifact is None)
    run_id: str | None = Field(default=None, exclude_if=lambda run_id: run_id is None)
    """The run that the artifact belongs to."""

    @classmethod
    def from_bytes(cls, data: Bytes, *, mime_type: str = "", name: str = "") -> Self:
        """Of bytes. ``mime_type`` counts where the bytes themselves do not show it. Raises InvalidDataError."""
        return cls._made(data, base64.b64encode(data).decode(), mime_type, name)

    @classmethod
    def from_path(cls, path: Path | str) -> Self:
        """Of a file. Raises OSError where it cannot be read, InvalidDataError where it cannot be taken."""
        with Path(path).open("rb") as file:
            return cls.from_bytes(file.read(MEDIUM_BYTES + 1), name=Path(path).name)

    @classmethod
    def from_base64(cls, text: str, *, mime_type: str = "", name: str = "") -> Self:
        """Of bytes that are written in base64. Raises InvalidDataError."""
        if len(text) > MEDIUM_BYTES * 3 // 2:
            raise cls._refused("data", _too_large(len(text) * 3 // 4))
        plain = "".join(text.split())
        try:
            data = base64.b64decode(plain, validate=True)
        except ValueError:
            raise cls._refused("data", f"must be bytes in base64, got {one_line(text, most=20)!r}") from None
        return cls._made(data, plain, mime_type, name)

    @classmethod
    def from_url(cls, url: str, *, name: str = "") -> Self:
        """Of a ``data:`` address, which holds the bytes. Others are refused: nothing is fetched from anywhere."""
        match = _DATA_URL.match(url)
        if match is None or not match[3]:
            rule = "must be a 'data:' address in base64, which holds the bytes: nothing is fetched from elsewhere"
            raise cls._refused("url", f"{rule}, got {one_line(url, most=60)!r}")
        return cls.from_base64(url[match.end() :], mime_type=match[1], name=name)

    @classmethod
    def _made(cls, data: Bytes, text: str, said: str, name: str) -> Self:
        if not data:
            raise cls._refused("data", "must not be empty")
        if len(data) > MEDIUM_BYTES:
            raise cls._refused("data", _too_large(len(data)))
        # A name may come from anywhere: its last part, with every character visible.
        shown = one_line(re.split(r"[\\/]", name)[-1].strip(), most=LONGEST_NAME)
        made = cls(mime_type=media_type(data, said, name), bytes=len(data), name=shown, data=text)
        if made.kind not in cls.kinds:
            rule = f"must be {' or '.join(cls.kinds)}, and this is {made.mime_type!r}"
            raise cls._refused("mime_type", f"{rule}; Document takes any kind" + (f": {shown!r}" if shown else ""))
        return made

    @classmethod
    def _refused(cls, field: str, rule: str) -> InvalidDataError:
        return InvalidDataError(cls.__name__, [(field, rule)])

    @property
    def kind(self) -> MediaKind:
        if self.mime_type in IMAGES:
            return "image"
        return "audio" if self.mime_type.startswith("audio/") else "document"

    @property
    def is_text(self) -> bool:
        """Whether it can be read out to any model."""
        return self.mime_type.startswith("text/") or self.mime_type in _TEXTS

    @property
    def url(self) -> str:
        """Its bytes as an address, as models take them."""
        return f"data:{self.mime_type};base64,{self.data}"

    @property
    def digest(self) -> str:
        """The same for the same bytes, kept or not."""
        return self.artifact or hashlib.sha256((self.data or "").encode()).hexdigest()

    def words(self, why: str = "") -> str:
        """What it is, in a line, and why it is only told of."""
        size = f"{self.bytes} bytes" if self.bytes < 1_000 else f"{self.bytes / 1e3:.0f} kB"
        size = size if self.bytes < 1_000_000 else f"{self.bytes / 1e6:.1f} MB"
        what = "file" if self.kind == "document" else self.kind
        named = f"{what} {self.name}" if self.name else what
        return f"[{named}, {self.mime_type}, {size}{f': {why}' if why else ''}]"

    def kept_in(self, run_id: str) -> tuple[Medium, str | None]:
        """The same as a reference to an artifact of a run, and what is to be kept as it."""
        if self.data is None:
            return self, None
        return self.model_copy(update={"data": None, "artifact": self.digest, "run_id": run_id}), self.data


class Image(Medium):
    """A picture: PNG, JPEG, GIF or WebP."""

    kinds = ("image",)


class Audio(Medium):
    """A sound, e.g. WAV or MP3."""

    kinds = ("audio",)


class Document(Medium):
    """A file of any kind, e.g. a PDF or a text."""


def _too_large(size: int) -> str:
    return f"must have at most {MEDIUM_BYTES:,} bytes, got {size:,}{' or more' if size == MEDIUM_BYTES + 1 else ''}"


def check_media(media: Sequence[Medium]) -> None:
    """Raise ValueError where there is too much for one message."""
    if len(media) > MESSAGE_MEDIA:
        raise ValueError(f"media: at most {MESSAGE_MEDIA} images and files fit into a message, got {len(media)}")
    if (size := sum(medium.bytes for medium in media)) > REQUEST_MEDIA_BYTES:
        raise ValueError(f"media: at most {REQUEST_MEDIA_BYTES:,} bytes fit into a message, got {size:,}")
