"""Which model answers, and how it is asked: one class for programs, files, the command line and agents."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core import to_json

from journeyman.core.content import MediaKind
from journeyman.core.data import Entity, canonical_json, unchecked
from journeyman.core.errors import ConfigurationError, InvalidDataError, problem_text, validation_problems

AUTO = "auto"
"""The name of a model that is looked for."""
Reasoning: TypeAlias = Literal["none", "minimal", "low", "medium", "high"]

_REFERENCE = re.compile(r"\$\{[^{}]+\}")
_SECRET_HEADER = re.compile("auth|key|token|cookie|secret|password", re.IGNORECASE)
_SHORT = ("temperature", "max_output_tokens", "reasoning", "seed", "retries", "cache_prompt")
"""What the short form of a text can say: ``openai:gpt-5?temperature=0``."""
_MARKED = WithJsonSchema({"type": "string", "x-journeyman-secret": True})
"""Tells readers of a configuration file that ``${NAME}`` is looked up there."""


SecretText = Annotated[str, _MARKED]


class Timeouts(Entity):
    """Seconds; None is no limit. A long answer is fine as long as it goes on."""

    connect: float | None = Field(default=30.0, gt=0, description="until the server is reached")
    first_byte: float | None = Field(default=300.0, gt=0, description="until the answer begins")
    idle: float | None = Field(default=60.0, gt=0, description="between two pieces of the answer")
    total: float | None = Field(default=None, gt=0, description="for the whole answer")


class ModelSettings(Entity):
    """A model by its name, and how it is asked. A field that is left out is for the server to decide.

    Without a name it is laid over whatever model would answer otherwise. The key, and headers that are named like
    secrets, are in no dump, no log and no store unless they are references (``${NAME}``), which are looked up in the
    environment when the model is used.
    """

    name: SecretText = Field(default=AUTO, description="as in docs/models.md")
    temperature: float | None = Field(default=None, ge=0, description="0 is the least random")
    max_output_tokens: int | None = Field(default=None, gt=0, description="of one answer, thinking included")
    reasoning: Reasoning | None = Field(default=None, description="how much a model thinks before it answers")
    seed: int | None = Field(default=None, description="for the same answer again, where the server can do that")
    stop: tuple[str, ...] = Field(default=(), description="texts at which an answer ends")
    timeout: Timeouts = Field(default_factory=Timeouts, description="in seconds; a number is for the whole answer")
    retries: int = Field(default=2, ge=0, le=100, description="how often to ask again after errors that may pass")
    headers: dict[str, SecretText] = Field(default_factory=dict, repr=False, description="sent with every request")
    base_url: SecretText | None = Field(default=None, description="the server's address")
    api_key: Annotated[SecretStr, _MARKED] | None = Field(default=None, description="in a file only by `${NAME}`")
    extra: dict[str, Any] = Field(default_factory=dict, description="further fields of the request's body")
    cache_prompt: bool | None = Field(default=None, description="keep what was read, where the provider has that")
    media: tuple[MediaKind, ...] | None = Field(
        default=None, description="what it takes besides text: image, audio, document; else known by its name"
    )

    @field_validator("timeout", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        return {"total": value} if isinstance(value, int | float) and not isinstance(value, bool) else value

    @field_validator("stop", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_serializer("api_key")
    def _reference(self, value: SecretStr | None) -> str | None:
        return None if value is None or not _REFERENCE.search(value.get_secret_value()) else value.get_secret_value()

    @field_serializer("headers")
    def _plain(self, value: dict[str, str]) -> dict[str, str]:
        return {
            name: text for name, text in value.items() if _REFERENCE.search(text) or not _SECRET_HEADER.search(name)
        }

    @model_validator(mode="after")
    def _one_address(self) -> ModelSettings:
        if self.base_url is not None and "://" in self.name:
            raise ValueError("base_url: the name holds an address, too; write the name without it")
        return self

    def __str__(self) -> str:
        """As text, which ``of`` reads: the name alone, with a few settings behind a question mark, or as JSON."""
        said = self.model_dump(mode="json", include=set(self.given))
        given = {name: value for name, value in said.items() if value is not None and value != {}}
        if any(name not in _SHORT for name in given):
            return to_json({"name": self.name, **given}).decode()
        words = (
            f"{name}={value if isinstance(value, str) else to_json(value).decode()}" for name, value in given.items()
        )
        return f"{self.name}?{'&'.join(words)}" if given else self.name

    @property
    def key(self) -> str:
        """Equal for settings that make the same model. Holds secrets: for lookups in this process alone."""
        secret = None if self.api_key is None else self.api_key.get_secret_value()
        return canonical_json([self.model_dump(mode="json"), secret, self.headers])

    @property
    def given(self) -> list[str]:
        """What is set besides the name."""
        return [
            name
            for name in type(self).model_fields
            if name != "name" and getattr(self, name) != getattr(_NOTHING, name)
        ]

    def over(self, other: str | ModelSettings) -> ModelSettings:
        """What is given here, and else what the other says; the other only counts where no name is given here."""
        if self.name != AUTO:
            return self
        below = ModelSettings.of(other)
        return below.model_copy(update={name: getattr(self, name) for name in self.given})

    def resolved(self, look_up: Callable[[str], str]) -> ModelSettings:
        """With what its references stand for."""
        update: dict[str, Any] = {"name": look_up(self.name)}
        update["headers"] = {name: look_up(text) for name, text in self.headers.items()}
        if self.base_url is not None:
            update["base_url"] = look_up(self.base_url)
        if self.api_key is not None:
            update["api_key"] = SecretStr(look_up(self.api_key.get_secret_value()))
        return self.model_copy(update=update)

    @classmethod
    def of(cls, model: str | ModelSettings) -> ModelSettings:
        """The settings that a text stands for. Raises ConfigurationError."""
        if isinstance(model, ModelSettings):
            return model
        try:
            if model.lstrip().startswith("{"):
                return cls.model_validate_json(model)
            name, mark, said = model.rpartition("?")
            if not mark or "#" in said:  # a question mark before it belongs to an address
                return cls(name=model)
            pairs = dict(part.partition("=")[::2] for part in said.split("&"))
            if unknown := [word for word in pairs if word not in _SHORT]:
                raise ConfigurationError(
                    f"model {model!r}: {unknown[0]!r} is no setting of this form, which has {', '.join(_SHORT)}; "
                    'the others are written as {"name": …}'
                )
            return cls(name=name, **pairs)
        except InvalidDataError as error:
            raise ConfigurationError(f"model {model!r}: {problem_text(error.problems)}") from None
        except ValidationError as error:
            # Neither the text nor a value of it: they may hold a key.
            problems = [(path, rule.partition(", got ")[0]) for path, rule in validation_problems(error)]
            raise ConfigurationError(f"model: {problem_text(problems)}") from None


_NOTHING = unchecked(ModelSettings, {"timeout": unchecked(Timeouts, {}), "headers": {}, "extra": {}})
