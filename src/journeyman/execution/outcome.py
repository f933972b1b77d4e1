"""The closed set of ways in which a stage ends a call. Refusals are values that a model can read.

Also where large results are kept, and what a call came to in its tool's own words.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json, to_json

from journeyman.core.calls import Artifact, ArtifactStore, CallStatus, ToolCallRecord
from journeyman.core.content import MESSAGE_MEDIA, Medium
from journeyman.core.data import LARGE_TEXT
from journeyman.core.errors import ErrorCategory, ErrorInfo, InvalidDataError, Severity, StoreError
from journeyman.core.policy import Policy
from journeyman.execution.results import encodable, head_and_tail, media_items, text_pieces, with_items

if TYPE_CHECKING:
    from journeyman.execution.invoke import Invoker
    from journeyman.tools.library import AnyTool


@dataclass(slots=True)
class Success:
    """It ran (or its result was in the cache); the value is plain JSON. Not frozen, which would be dear."""

    value: Any
    cached: bool = False
    size: int = 0
    """About how many bytes of JSON it is."""
    artifact: Artifact | None = None
    """Where it is kept, where that is not in ``value``."""
    media: tuple[Medium, ...] = ()
    """The images and files in it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """It did not run, or failed."""

    status: CallStatus
    error: ErrorInfo
    unhealthy: bool = False
    """Whether the circuit breaker counts this as a failure of the tool."""
    retry: bool = False
    """Whether another attempt is safe and may help."""

    @staticmethod
    def denied(code: str, message: str) -> Refusal:
        """The approval was denied, has expired, or nobody could be asked."""
        recover = "Do not repeat the call; go on without it, or tell the user what was not done"
        permission, low = ErrorCategory.PERMISSION, Severity.LOW
        guidance = "Ask again if it is wanted after all, and have somebody at hand who may approve it"
        return refuse(CallStatus.DENIED, code, message, recover, category=permission, severity=low, guidance=guidance)

    @staticmethod
    def skipped(tool_name: str) -> Refusal:
        """The process died while the call ran, and a person decided to skip it."""
        message = f"{tool_name!r} was interrupted, and a person decided to leave it out"
        return refuse(CallStatus.ERROR, "SKIPPED", message, "Go on without it; do not repeat it")

    @staticmethod
    def outcome_unknown(tool_name: str, why: str = "", *, ended: bool = False) -> Refusal:
        """Whoever ran the call, this process or a server, died meanwhile; a stored run waits until a person settles it.

        The model reads it only where nobody can settle it, or the run was ``ended`` before somebody had.
        """
        why = why or f"the process died while {tool_name!r} ran{', and the run was ended' if ended else ''}"
        settle = "Find out whether it took effect, then settle the call: run it again, mark it done, or skip it"
        return refuse(
            CallStatus.ERROR if ended else CallStatus.UNKNOWN,
            "OUTCOME_UNKNOWN",
            f"{why}: whether it took effect, nobody knows",
            "It may have taken effect: check before repeating it, and tell the user",
            severity=Severity.CRITICAL,
            guidance="Find out whether it took effect before anybody asks for it again" if ended else settle,
        )

    @staticmethod
    def cancelled(tool_name: str, *, under_way: bool) -> Refusal:
        """The run was cancelled before the call had an outcome."""
        message = f"{tool_name!r} was cancelled " + ("while it ran" if under_way else "before it ran")
        recover = "It may have taken effect: check before repeating it" if under_way else "Ask again"
        return refuse(CallStatus.CANCELLED, "CALL_CANCELLED", message, recover, severity=Severity.INFO)

    @staticmethod
    def rate_limited(tool_name: str, wait: float) -> Refusal:
        message = f"{tool_name!r} is called too often; the next call is possible in {wait:.1f} s"
        recover = "Do something else first, or tell the user to try again later"
        category = ErrorCategory.RATE_LIMIT
        return refuse(
            CallStatus.ERROR, "RATE_LIMITED", message, recover, category=category, retryable=True, retry_after=wait
        )

    @staticmethod
    def circuit_open(tool_name: str, wait: float) -> Refusal:
        message = f"{tool_name!r} failed several times in a row and is not tried again for {wait:.0f} s"
        recover = "Use another tool, or tell the user that this one is unavailable"
        return refuse(CallStatus.ERROR, "CIRCUIT_OPEN", message, recover, severity=Severity.HIGH, retryable=True)

    @staticmethod
    def deadline_passed(tool_name: str) -> Refusal:
        message, recover = f"there was no time left to run {tool_name!r}", "Answer with what you have"
        return refuse(CallStatus.ERROR, "DEADLINE_PASSED", message, recover, category=ErrorCategory.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Suspended:
    """A person must decide first: an approval, or (``unknown``) whether an interrupted call took effect."""

    call_id: str
    waiting_for: str
    unknown: bool = False


class PutAside(BaseException):
    """A call waits for an answer and holds nothing meanwhile. No error: the function that asks must not catch it."""

    def __init__(self, approval_id: str) -> None:
        self.approval_id = approval_id


_GUIDANCE = {
    ErrorCategory.NETWORK: "Check that what the tool talks to can be reached, then ask again",
    ErrorCategory.AUTHENTICATION: "Check the credentials the tool uses, then ask again",
    ErrorCategory.PERMISSION: "Ask somebody who may allow it, or do it yourself",
    ErrorCategory.RATE_LIMIT: "Wait a little and ask again, or raise the limit",
    ErrorCategory.INVALID_INPUT: "Say more exactly what you want, e.g. with the full name or number",
    ErrorCategory.TOOL_ERROR: "See what the tool says, and ask again with other values, or for something else",
    ErrorCategory.TIMEOUT: "Ask again, or allow more time",
    ErrorCategory.SYSTEM_ERROR: "Ask again; if it stays so, look into the log",
}
"""What a person can do about it, where whoever refuses has nothing more exact to say."""


def guided(info: ErrorInfo) -> ErrorInfo:
    """The same failure, with something a person can do about it."""
    if info.user_guidance:
        return info
    return info.model_copy(update={"user_guidance": _GUIDANCE[info.category]})


def refuse(
    status: CallStatus,
    code: str,
    message: str,
    recover: str,
    *,
    category: ErrorCategory = ErrorCategory.SYSTEM_ERROR,
    severity: Severity = Severity.MEDIUM,
    retryable: bool = False,
    guidance: str | None = None,
    unhealthy: bool = False,
    retry: bool = False,
    retry_after: float | None = None,
) -> Refusal:
    """A refusal with everything its readers need: the model, the operator, the retry loop and the breaker."""
    info = ErrorInfo(
        code=code,
        message=message,
        category=category,
        severity=severity,
        retryable=retryable,
        recover_action=recover,
        user_guidance=guidance or _GUIDANCE[category],
        retry_after=retry_after,
    )
    return Refusal(status, info, unhealthy, retry)


# --- results that are too large for their records: put away in an artifact store, and looked up again


async def keep(value: Any, run_id: str, store: ArtifactStore, *, policy: Policy) -> Artifact:
    """Put a plain JSON value into the store."""
    text = value if isinstance(value, str) else await asyncio.to_thread(_text, value)
    artifact_id = await store.put(run_id, text)
    head, tail = head_and_tail(policy.max_result_chars)
    kind = "text" if isinstance(value, str) else "json"
    return Artifact(id=artifact_id, kind=kind, chars=len(text), head=text[:head], tail=text[-tail:])


async def keep_media(value: Any, run_id: str, store: ArtifactStore | None) -> tuple[Any, tuple[Medium, ...]]:
    """A result whose images and files are put into the store, where there is one; and the first of them.

    Each is an object somewhere in it, with ``mime_type``, ``bytes`` and ``data``. What cannot be read loses its data
    and says why.
    """
    items = media_items(value)
    others: dict[int, Any] = {}
    media: list[Medium] = []
    for item in items:
        told = {key: held for key, held in item.items() if key not in ("data", "run_id")}
        if "data" in item:
            read = partial(_medium, item)
            medium = await asyncio.to_thread(read) if len(item["data"]) > LARGE_TEXT else read()
            if isinstance(medium, str):
                others[id(item)] = {**told, "problem": medium}
                continue
            told |= {"mime_type": medium.mime_type, "bytes": medium.bytes}
            if store is None:
                told["data"] = medium.data
            else:
                told["artifact"] = await store.put(run_id, medium.data or "")
                medium = medium.model_copy(update={"data": None, "artifact": told["artifact"], "run_id": run_id})
        else:
            size = max(0, item["bytes"])
            medium = Medium(mime_type=item["mime_type"], bytes=size, artifact=item["artifact"], run_id=run_id)
        others[id(item)] = told
        media.append(medium)
    return (with_items(value, others) if others else value), tuple(media[:MESSAGE_MEDIA])


def _medium(item: dict[str, Any]) -> Medium | str:
    name = item.get("name", item.get("uri", ""))
    try:
        named = name if isinstance(name, str) else ""
        return Medium.from_base64(item["data"], mime_type=item["mime_type"], name=named)
    except InvalidDataError as error:
        return error.problems[0][1]


def _text(value: Any) -> str:
    return b"".join(text_pieces(value, to_json)).decode()


async def whole(record: ToolCallRecord, run_id: str, store: ArtifactStore | None) -> Any:
    """A call's result, looked up where it is kept apart."""
    if (artifact := record.artifact) is None:
        return record.result
    text = None if store is None else await store.read(run_id, artifact.id)
    if text is None:
        raise StoreError(f"the result of call {record.call_id!r} of run {run_id!r} is not in the store any more")
    return text if artifact.kind == "text" else await asyncio.to_thread(from_json, text)


# --- what a call came to in the tool's own words, for people; the model gets the result as it is

RENDER_SECONDS = 1.0
"""How long a tool may take to say what a call came to."""
MOST_RENDERED = 20_000
"""Of what it says."""


async def own_words(tool: AnyTool | None, record: ToolCallRecord, invoker: Invoker, *, run_id: str) -> str:
    """What the tool's ``render`` says of a call that succeeded; nothing where it has none, or something goes wrong.

    A result that is kept apart from its record is not read back for this.
    """
    if tool is None or tool.render is None or record.status is not CallStatus.SUCCESS or record.artifact is not None:
        return ""
    about, given = {"run_id": run_id, "call_id": record.call_id}, (record.arguments, record.result)
    said = await invoker.words(tool, tool.render, *given, **about, timeout=RENDER_SECONDS)
    return encodable(said.strip()[:MOST_RENDERED])
