"""Results that are too large for their records: put away in an artifact store, and looked up again."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.calls import Artifact, ArtifactStore, ToolCallRecord
from journeyman.core.errors import StoreError
from journeyman.core.policy import Policy
from journeyman.execution.results import has_media, head_and_tail
from journeyman.execution.sizes import text_pieces


async def keep(value: Any, run_id: str, store: ArtifactStore, *, policy: Policy) -> Artifact:
    """Put a plain JSON value into the store."""
    text = value if isinstance(value, str) else await asyncio.to_thread(_text, value)
    artifact_id = await store.put(run_id, text)
    head, tail = head_and_tail(policy.max_result_chars)
    kind = "text" if isinstance(value, str) else "json"
    return Artifact(id=artifact_id, kind=kind, chars=len(text), head=text[:head], tail=text[-tail:])


async def keep_media(value: Any, run_id: str, store: ArtifactStore) -> Any:
    """A result whose images and other media are put into the store; each then says as what it is kept.

    A result has media where it is an object with a list of this name, whose items have a ``mime_type`` and ``data``.
    """
    if not has_media(value):
        return value
    kept = []
    for item in value["media"]:
        if "data" in item:
            told = {key: held for key, held in item.items() if key != "data"}
            item = {**told, "artifact": await store.put(run_id, item["data"])}
        kept.append(item)
    return {**value, "media": kept}


def _text(value: Any) -> str:
    return b"".join(text_pieces(value, to_json)).decode()


async def whole(record: ToolCallRecord, run_id: str, store: ArtifactStore) -> Any:
    """A call's result, looked up where it is kept apart."""
    if (artifact := record.artifact) is None:
        return record.result
    text = await store.read(run_id, artifact.id)
    if text is None:
        raise StoreError(f"the result of call {record.call_id!r} of run {run_id!r} is not in the store any more")
    return text if artifact.kind == "text" else await asyncio.to_thread(from_json, text)
