"""What OpenAI's clients send: which of it an agent can do, which means nothing to it, and which is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from journeyman.core.content import Audio, Document, Image, Medium, check_media
from journeyman.core.errors import InvalidDataError
from journeyman.core.runs import Message, Role, TaskInput, task_of
from journeyman.doors.http.errors import FieldError, Problem

WAITING = "This waits for a person to decide about"
_WAITING_RUN = re.compile(re.escape(WAITING) + r".*\(run (run_[A-Za-z0-9_-]{1,64})\)", re.DOTALL)
MOST_TEXT = 1_000_000
"""Characters of a conversation; the request itself may be larger for what images and files need."""
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


class ImageUrl(_Lenient):
    url: str = Field(description="A 'data:' address in base64: nothing is fetched from elsewhere.")


class InputAudio(_Lenient):
    data: str
    format: str = ""


class InputFile(_Lenient):
    file_data: str = Field(description="A 'data:' address in base64.")
    filename: str = ""


class Part(_Lenient):
    """A text, an image, a sound or a file."""

    type: Literal["text", "image_url", "input_audio", "file"]
    text: str | None = None
    image_url: ImageUrl | None = None
    input_audio: InputAudio | None = None
    file: InputFile | None = None
    _medium: Medium | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _read(self) -> Part:
        match getattr(self, self.type):
            case None:
                raise ValueError(f"a part of the type {self.type!r} needs a field {self.type!r}")
            case ImageUrl(url=url):
                self._medium = _checked(Image.from_url, url)
            case InputAudio(data=data):
                self._medium = _checked(Audio.from_base64, data)
            case InputFile(file_data=data, filename=name):
                self._medium = _checked(partial(Document.from_url, name=name), data)
        return self

    @property
    def medium(self) -> Medium | None:
        return self._medium


def _checked(read: Callable[[str], Medium], text: str) -> Medium:
    try:
        return read(text)
    except InvalidDataError as error:
        raise ValueError(error.problems[0][1]) from None


def _known_parts(value: Any) -> Any:
    """Refuses other parts in words; the types beside it would name each form that they are not."""
    for part in value if isinstance(value, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind not in get_args(Part.model_fields["type"].annotation):
            raise ValueError(f"an agent reads text, images, sounds and files, and this has a part of the type {kind!r}")
    return value


class Said(_Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[str | Annotated[list[Part], Field(max_length=1_000)] | None, BeforeValidator(_known_parts)] = (
        None
    )

    @model_validator(mode="after")
    def _bounded(self) -> Said:
        check_media(self.media)
        if self.media and self.role != "user":
            raise ValueError(f"only the user's messages may hold images and files, this one is {self.role!r}")
        return self

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.text is not None)
        return self.content or ""

    @property
    def media(self) -> tuple[Medium, ...]:
        parts = self.content if isinstance(self.content, list) else ()
        return tuple(part.medium for part in parts if part.medium is not None)


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

    @model_validator(mode="after")
    def _said_briefly(self) -> CompletionRequest:
        if sum(len(item.text) for item in self.messages) > MOST_TEXT:
            raise ValueError(f"the texts of all messages have more than {MOST_TEXT:,} characters")
        return self

    def conversation(self) -> tuple[TaskInput, list[Message]]:
        """What is asked, and what was said before."""
        *before, last = self.messages
        if last.role != "user" or not (last.text.strip() or last.media):
            message = "the last message must be the user's, and say something"
            raise Problem(400, "VALIDATION_ERROR", message, fields=[FieldError(field="messages", message=message)])
        # Calls of a client's own tools are not ours to go on with; what was said around them is.
        said = [item for item in before if item.role in _ROLES and (item.text or item.media)]
        history = [Message(role=_ROLES[item.role], content=item.text, media=item.media) for item in said]
        return task_of([last.text, *last.media]), history

    def waiting_run(self) -> str | None:
        """The run of which this conversation was told last that it waits for a person."""
        said = next((item.text for item in reversed(self.messages) if item.role == "assistant" and item.text), "")
        named = _WAITING_RUN.search(said)
        return None if named is None else named.group(1)


def goes_on(text: str) -> bool:
    """Whether somebody only wants to hear what came of it."""
    return text.strip().rstrip(".!?").lower() in _GO_ON
