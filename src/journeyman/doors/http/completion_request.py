"""What OpenAI's clients send: which of it an agent can do, which means nothing to it, and which is refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from journeyman.core.runs import Message, Role
from journeyman.doors.http.errors import FieldError, Problem

WAITING = "This waits for a person to decide about"
_WAITING_RUN = re.compile(re.escape(WAITING) + r".*\(run (run_[A-Za-z0-9_-]{1,64})\)", re.DOTALL)
_GO_ON = frozenset({"continue", "go on", "proceed", "resume", "approved", "done", "please continue"})
_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}


def _only(*supported: Any, why: str) -> BeforeValidator:
    """Refuses every other value in words; the type beside it says the same in the OpenAPI document."""

    def check(value: Any) -> Any:
        # By type as well: for Python True is 1.
        if any(type(value) is type(item) and value == item for item in (None, *supported)):
            return value
        raise ValueError(f"not supported here: {why}")

    return BeforeValidator(check)


_ONE_ANSWER = _only(1, why="an agent gives one answer; leave it out, or send 1")
_OWN_TOOLS = _only([], why="the agent has its own tools, and uses them itself; leave it out")
_TOOL_CHOICE = _only("auto", "none", why="the agent chooses among its own tools; leave it out")
_NO_LOGPROBS = _only(False, 0, why="an agent's answer may come from several model calls; leave it out")
_NO_BIAS = _only({}, why="the agent's model has its own settings; leave it out")
_NO_STOP = _only([], why="an agent's answer is not cut; leave it out")
_TEXT_ONLY = _only(["text"], why="an agent reads and writes text; leave it out")
_NOT_HERE = _only(why="the agent uses its own tools for that; leave it out")

Nothing = Annotated[list[Any], Field(max_length=0)]


class _Lenient(BaseModel):
    """Clients send fields that mean nothing to an agent."""

    model_config = ConfigDict(extra="ignore")


class Part(_Lenient):
    type: Literal["text"]
    text: str


def _texts_alone(value: Any) -> Any:
    """Refuses pictures, sound and files in words; the types beside it would name each form that they are not."""
    for part in value if isinstance(value, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise ValueError(
                f"an agent reads text, and this has a part of the type {kind!r}; say in words what it shows"
            )
    return value


class Said(_Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str | Annotated[list[Part], Field(max_length=1_000)] | None, BeforeValidator(_texts_alone)] = (
        None
    )

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(_Lenient):
    include_usage: bool = False


class SchemaFormat(_Lenient):
    json_schema: dict[str, Any] = Field(alias="schema")


class ResponseFormat(_Lenient):
    """Text, some JSON object, or JSON of a schema; the answer is checked, whatever the agent's model can do."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None

    @model_validator(mode="after")
    def _whole(self) -> ResponseFormat:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError('"json_schema" needs a field "json_schema" with the schema')
        return self

    @property
    def schema_of_answer(self) -> dict[str, Any] | None:
        if self.type == "json_schema" and self.json_schema is not None:
            return self.json_schema.json_schema
        return {"type": "object"} if self.type == "json_object" else None


class _Hints(BaseModel):
    """Settings for a model: taken, and not used, since the agent's model has its own."""

    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    parallel_tool_calls: bool | None = None
    prediction: Any = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    metadata: dict[str, Any] | None = None


class CompletionRequest(_Hints):
    """What OpenAI's clients send. Settings of a model (temperature and so on) are taken and not used; what would change
    the answer and cannot be done here (n, tools, logprobs, stop…), and what is unknown, is refused."""

    model_config = ConfigDict(extra="forbid")

    model: str = Field(min_length=1, max_length=128, description="An agent's name.", examples=["assistant"])
    messages: list[Said] = Field(
        min_length=1, max_length=1_000, examples=[[{"role": "user", "content": "Remind me to buy milk"}]]
    )
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[Literal[1] | None, _ONE_ANSWER] = None
    tools: Annotated[Nothing | None, _OWN_TOOLS] = None
    functions: Annotated[Nothing | None, _OWN_TOOLS] = None
    tool_choice: Annotated[Literal["auto", "none"] | None, _TOOL_CHOICE] = None
    function_call: Annotated[Literal["auto", "none"] | None, _TOOL_CHOICE] = None
    response_format: ResponseFormat | None = None
    logprobs: Annotated[Literal[False] | None, _NO_LOGPROBS] = None
    top_logprobs: Annotated[Literal[0] | None, _NO_LOGPROBS] = None
    logit_bias: Annotated[Annotated[dict[str, Any], Field(max_length=0)] | None, _NO_BIAS] = None
    stop: Annotated[Nothing | None, _NO_STOP] = None
    modalities: Annotated[Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None, _TEXT_ONLY] = None
    audio: Annotated[None, _NOT_HERE] = None
    web_search_options: Annotated[None, _NOT_HERE] = None

    def conversation(self) -> tuple[str, list[Message]]:
        """What is asked, and what was said before."""
        *before, last = self.messages
        if last.role != "user" or not last.text.strip():
            message = "the last message must be the user's, and say something"
            raise Problem(400, "VALIDATION_ERROR", message, fields=[FieldError(field="messages", message=message)])
        # Calls of a client's own tools are not ours to go on with; what was said around them is.
        history = [Message(role=_ROLES[item.role], content=item.text) for item in before if item.role in _ROLES]
        return last.text, [message for message in history if message.content]

    def waiting_run(self) -> str | None:
        """The run of which this conversation was told last that it waits for a person."""
        said = next((item.text for item in reversed(self.messages) if item.role == "assistant" and item.text), "")
        found = _WAITING_RUN.search(said)
        return None if found is None else found.group(1)


def goes_on(text: str) -> bool:
    """Whether somebody only wants to hear what came of it."""
    return text.strip().rstrip(".!?").lower() in _GO_ON
