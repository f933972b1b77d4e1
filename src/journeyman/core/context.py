"""What a running tool may know and do: its principal, secrets, deadline, idempotency key, progress, cancellation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from journeyman.core.principals import Principal
from journeyman.core.risk import RiskLevel

SECRET_PREFIX = "JOURNEYMAN_SECRET_"


class MissingSecretError(KeyError):
    """A tool asked for a secret that is not set, or that it has not declared."""


def _from_environment(names: Collection[str]) -> dict[str, str]:
    found = {k.removeprefix(SECRET_PREFIX): v for k, v in os.environ.items() if k.startswith(SECRET_PREFIX)}
    return {name: found[name] for name in names if name in found} if names else found


class Secrets(Mapping[str, str]):
    """Secrets by name, for tools only. Its text never shows a value, and it remembers which values were read.

    Values that were read are masked in the tool's result and errors, so that they reach no model, log or journal.
    """

    def __init__(self, values: Mapping[str, str] | Callable[[], Mapping[str, str]]) -> None:
        self._given = values
        self._read: set[str] = set()

    @cached_property
    def _values(self) -> dict[str, str]:
        # Looked up for whoever asks: most tools never do, and every call gets such an object.
        return dict(self._given() if callable(self._given) else self._given)

    @classmethod
    def from_environment(cls, names: Collection[str] = ()) -> Secrets:
        """``context.secrets["GITHUB_TOKEN"]`` is the variable ``JOURNEYMAN_SECRET_GITHUB_TOKEN``.

        With names, only these.
        """
        return cls(partial(_from_environment, names))

    def __getitem__(self, name: str) -> str:
        try:
            value = self._values[name]
        except KeyError:
            hint = f"set the environment variable {SECRET_PREFIX}{name}, and declare it: tool(secrets=[{name!r}])"
            raise MissingSecretError(f"no secret {name!r}; {hint}") from None
        self._read.add(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Secrets({sorted(self._values)})"

    def unread(self) -> Iterator[tuple[str, str]]:
        """Names and values, for handing them on: reading them so does not count as reading."""
        return iter(self._values.items())

    def mask(self, text: str) -> str:
        """The text without any secret value that was read through this object."""
        # The longest first: where one secret is part of another, nothing of the longer one may stay.
        for value in sorted(self._read, key=len, reverse=True):
            if value:
                text = text.replace(value, "•••")
        return text

    def masked(self, value: Any) -> Any:
        """A JSON value with every text in it masked. Not done on JSON text, where quotes and newlines are escaped."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self.masked(item) for item in value]
        if isinstance(value, dict):
            return {self.mask(key) if isinstance(key, str) else key: self.masked(item) for key, item in value.items()}
        return value

    @property
    def were_read(self) -> bool:
        return bool(self._read)


_NO_SECRETS = Secrets({})


class ToolContext:
    """Passed to a tool that has a parameter annotated ``ToolContext``; the model never sees that parameter."""

    def __init__(
        self,
        *,
        principal: Principal | None = None,
        secrets: Secrets | None = None,
        idempotency_key: str = "",
        deadline: float | None = None,
        correlation_id: str = "",
        run_id: str = "",
        call_id: str = "",
        requested_at: float | None = None,
        risk: RiskLevel | None = None,
        report: Callable[[str, float | None], None] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.principal = principal
        self.secrets = _NO_SECRETS if secrets is None else secrets
        self.idempotency_key = idempotency_key
        """The same for every attempt of one call, also after a crash: hand it to services that accept such a key."""
        self.deadline = deadline
        """When the attempt will be given up, in seconds since the epoch."""
        self.correlation_id = correlation_id
        self.run_id = run_id
        self.call_id = call_id
        self.requested_at = requested_at
        """When a person was asked about this call, or else when it was requested, in seconds since the epoch.

        What has come into being since cannot have been meant.
        """
        self.risk = risk
        """What this call was graded as; where that is irreversible, a person has agreed to it."""
        self.settings: Mapping[str, Any] = {} if settings is None else settings
        """What the operator has set for the tool's category (``global_config`` in journeyman.yaml)."""
        self._report = report
        self._cancelled = False

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Tell whoever watches how far the tool has come; ``fraction`` is between 0 and 1."""
        if self._report is not None and not self._cancelled:
            self._report(self.secrets.mask(message), fraction)

    def remaining(self) -> float | None:
        """Seconds until the deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.time())

    @property
    def cancelled(self) -> bool:
        """Whether the call was given up. A blocking tool that loops should look here and stop."""
        return self._cancelled

    def cancel(self) -> None:
        """Mark the call as given up; the executor's business."""
        self._cancelled = True
