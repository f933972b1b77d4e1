"""A language model that plays a script."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from journeyman.core.content import MediaKind
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.core.runs import ToolCall, Usage

PIECES = 4
"""In how many parts a text is streamed."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call in a script; made by ``call``."""

    tool_call: ToolCall

    def with_confidence(self, confidence: float) -> ScriptedCall:
        """The same call, with what an adapter would report as its confidence."""
        return self._but(confidence=confidence)

    def with_id(self, id: str) -> ScriptedCall:
        """The same call under an id of the model's own, which the loop replaces by ours."""
        return self._but(id=id)

    def raw(self, text: str) -> ScriptedCall:
        """The same call with arguments that are no JSON object."""
        return self._but(arguments={}, malformed=text)

    def _but(self, **changes: Any) -> ScriptedCall:
        return ScriptedCall(ToolCall(**{**dict(self.tool_call), **changes}))


Said: TypeAlias = str | ScriptedCall | ModelResponse | BaseException
Turn: TypeAlias = Said | Callable[[ModelRequest], Said | Awaitable[Said]]
"""One answer: a text, a call, a whole response, an exception to raise, or a function of the request that gives one."""


def call(name: str, /, **arguments: Any) -> ScriptedCall:
    """The model calls a tool."""
    return ScriptedCall(ToolCall(tool_name=name, arguments=arguments))


def say(text: str, *, confidence: float | None = None) -> ModelResponse:
    """The model answers in words."""
    return ModelResponse(text=text, confidence=confidence)


def together(*calls: ScriptedCall) -> ModelResponse:
    """The model calls several tools in one turn."""
    return ModelResponse(calls=tuple(scripted.tool_call for scripted in calls))


class ScriptedModel:
    """Plays a script, one turn per step of a run.

    The turn is chosen by the run's step number, not by how often the model was asked, so one model works after a
    restart and for several runs at once. Each answer counts as one request and no tokens.
    """

    def __init__(self, turns: Iterable[Turn], *, name: str = "scripted", media: Sequence[MediaKind] = ()) -> None:
        self.name = name
        self.media = media
        """What it takes besides text; it is told of the rest in words."""
        self.turns: Sequence[Turn] = tuple(turns)
        self.requests: list[ModelRequest] = []
        """The requests it was sent."""

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self.turns)} turns, name={self.name!r})"

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        self.requests.append(request)
        if request.step > len(self.turns):
            raise ModelError(
                "SCRIPT_ENDED",
                f"the script of model {self.name!r} has {len(self.turns)} turns; it was asked for turn {request.step}",
                user_guidance="add turns to the script, or end it with say(...)",
            )
        turn = self.turns[request.step - 1]
        if callable(turn):
            returned = turn(request)
            said = await returned if inspect.isawaitable(returned) else returned
        else:
            said = turn
        response = as_response(said)
        if deltas is not None:
            for piece in pieces(response.text):
                deltas.text(piece)
        return response.model_copy(update={"usage": Usage(requests=1), "model": self.name})


def as_response(said: Said) -> ModelResponse:
    """What was said, as a response; an exception is raised."""
    if isinstance(said, BaseException):
        raise said
    if isinstance(said, str):
        return say(said)
    if isinstance(said, ScriptedCall):
        return together(said)
    if isinstance(said, ModelResponse):
        return said
    raise TypeError(f"a turn is a text, call(...), together(...), a ModelResponse or an exception, not {said!r}")


def pieces(text: str) -> list[str]:
    """A text in a few parts."""
    size = max(1, -(-len(text) // PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]
