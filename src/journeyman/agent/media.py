"""Images and files on their way to a model: their bytes where it can take them, and words where it cannot."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from journeyman.core.content import REQUEST_MEDIA, REQUEST_MEDIA_BYTES, Medium
from journeyman.core.data import LARGE_TEXT
from journeyman.core.errors import InvalidDataError
from journeyman.core.runs import Message

if TYPE_CHECKING:
    from journeyman.agent.run import Run

LONGEST_TEXT = 100_000
"""Characters of a document that is text, which any model can read."""
_VERBS = {"image": "see", "audio": "hear", "document": "read"}


class MediaLoader:
    """Makes messages ready for one model: what they hold is loaded, or told of.

    A message that stays as it is comes out as the same object each time, so that an adapter need not encode it again.
    """

    def __init__(self, takes: Collection[str], changed: Callable[[], None]) -> None:
        self._takes = takes
        self._changed = changed
        """Called when a message comes out otherwise than before: what was made of the earlier ones is void."""
        self._loaded: dict[tuple[str, str], Medium | None] = {}
        self._ready: dict[int, tuple[Message, list[Medium | str], Message]] = {}

    async def ready(self, messages: Sequence[Message], run: Run) -> Sequence[Message]:
        """The same messages, in each of which ``media`` are only those with bytes that the model takes."""
        ready = list(messages)
        left = [REQUEST_MEDIA, REQUEST_MEDIA_BYTES]
        for at in range(len(ready) - 1, -1, -1):  # the latest first: they are what is talked about
            if (message := ready[at]).media:
                given = [await self._given(medium, run, left) for medium in message.media]
                ready[at] = self._message(message, given)
        return ready

    def _message(self, message: Message, given: list[Medium | str]) -> Message:
        known = self._ready.get(id(message))
        if known is not None and known[0] is message and known[1] == given:
            return known[2]
        if known is not None:
            self._changed()
        words = [item for item in given if isinstance(item, str)]
        media = tuple(item for item in given if isinstance(item, Medium))
        made = message.model_copy(update={"content": "\n".join([message.content, *words]), "media": media})
        self._ready[id(message)] = message, given, made
        return made

    async def _given(self, medium: Medium, run: Run, left: list[int]) -> Medium | str:
        if not medium.is_text and not self._taken(medium):
            return medium.words(f"this model cannot {_VERBS[medium.kind]} it")
        if left[0] < 1 or medium.bytes > left[1]:
            return medium.words("not sent, since there are too many or too large ones after it")
        loaded = await self._load(medium, run)
        if loaded is None:
            return medium.words("not kept any more")
        left[0] -= 1
        left[1] -= loaded.bytes
        if loaded.is_text:
            text = base64.b64decode(loaded.data or "").decode("utf-8", "replace")
            rest = f"\n… [{len(text) - LONGEST_TEXT:,} characters left out]" if len(text) > LONGEST_TEXT else ""
            return f"{loaded.words('its text follows')}\n{text[:LONGEST_TEXT]}{rest}"
        return loaded if self._taken(loaded) else loaded.words(f"this model cannot {_VERBS[loaded.kind]} it")

    def _taken(self, medium: Medium) -> bool:
        # Of documents models read PDF; a file of any other kind would make their servers refuse the whole question.
        return medium.kind in self._takes and (medium.kind != "document" or medium.mime_type == "application/pdf")

    async def _load(self, medium: Medium, run: Run) -> Medium | None:
        """With its bytes, and as what these show it to be."""
        if medium.data is not None:
            return medium
        key = medium.run_id or run.id, medium.artifact or ""
        if key not in self._loaded:
            store = run.artifacts or run.executor.artifacts
            text = None if store is None else await store.read(*key)
            self._loaded[key] = None if text is None else await _read(text, medium)
        return self._loaded[key]


async def _read(text: str, medium: Medium) -> Medium | None:
    def read() -> Medium | None:
        try:
            return Medium.from_base64(text, mime_type=medium.mime_type, name=medium.name)
        except InvalidDataError:
            return None

    return await asyncio.to_thread(read) if len(text) > LARGE_TEXT else read()
