"""Everything that can go wrong on the way to a model server, as a ``ModelError`` that says what to do about it."""

from __future__ import annotations

import html
import math
import re
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.errors import ErrorCategory, ModelError

SHOWN = 300


class Faults:
    """Writes the errors of one model at one server. Never shows the key, not even where the server repeats it.

    ``key`` and ``address`` name the environment variables that hold the two; ``address`` is empty where there is none.
    """

    def __init__(
        self, *, model: str, server: str, secret: str = "", key: str = "OPENAI_API_KEY", address: str = ""
    ) -> None:
        self._model = model
        self._server = server
        self._secret = secret
        self._key = key
        self._address = address

    def no_key(self, reason: str = "") -> ModelError:
        keyless = f", or set {self._address} to a server that needs no key" if self._address else ""
        return ModelError(
            "MODEL_AUTHENTICATION",
            f"{self._server} cannot be used: {self._shorten(reason)}" if reason else f"no API key for {self._server}",
            category=ErrorCategory.AUTHENTICATION,
            user_guidance=f"set {self._key}{keyless}",
        )

    def timed_out(self, seconds: float) -> ModelError:
        return ModelError(
            "MODEL_TIMEOUT",
            f"{self._server} did not answer within {seconds:g} s",
            category=ErrorCategory.TIMEOUT,
            retryable=True,
            user_guidance="try again, or give the model more time",
        )

    def unreachable(self, error: Exception) -> ModelError:
        reason = self._shorten(str(error)) or type(error).__name__
        return ModelError(
            "MODEL_UNAVAILABLE",
            f"cannot reach {self._server}: {reason}",
            category=ErrorCategory.NETWORK,
            retryable=True,
            user_guidance=f"start the model server, or check {self._address}"
            if self._address
            else "check the network connection, and whether the provider reports an outage",
        )

    def cut(self) -> ModelError:
        return ModelError(
            "MODEL_UNAVAILABLE",
            f"{self._server} stopped in the middle of its answer",
            category=ErrorCategory.NETWORK,
            retryable=True,
            user_guidance="try again; if it happens often, look at the server's log",
        )

    def bad_answer(self, what: str, data: bytes = b"") -> ModelError:
        shown = self._shorten(readable(data))
        return ModelError(
            "MODEL_BAD_ANSWER",
            f"{self._server} answered with {what}" + (f": {shown!r}" if shown else ""),
            user_guidance=f"check that {self._address} is the address of an OpenAI-compatible API; it often ends in /v1"
            if self._address
            else "try again; if it happens often, name another model",
        )

    def reported(self, report: Any) -> ModelError:
        """An error inside an answer that was otherwise fine; some servers put the HTTP status into it."""
        code = report.get("code") if isinstance(report, dict) else None
        body = to_json({"error": report}, fallback=str)
        if isinstance(code, int) and 400 <= code < 600:
            return self.refused(code, body)
        return self.bad_answer("an error", body)

    def refused(self, status: int, body: bytes, *, location: str = "", out_of_quota: bool = False) -> ModelError:
        said = self._shorten(readable(body))
        message = f"{self._server} answered {status}" + (f": {said}" if said else "")
        if status in (401, 403) and not out_of_quota:
            return ModelError(
                "MODEL_AUTHENTICATION",
                message,
                category=ErrorCategory.AUTHENTICATION,
                user_guidance=f"check {self._key} and what the key may use",
            )
        if status == 404:
            return ModelError(
                "MODEL_NOT_FOUND",
                f"{message} (asked for model {self._model!r})",
                category=ErrorCategory.INVALID_INPUT,
                user_guidance="check the model's name"
                + (f", and that {self._address} is right; it often ends in /v1" if self._address else ""),
            )
        if status == 429 or out_of_quota:
            return self._rate_limited(message, out_of_quota=out_of_quota or b"insufficient_quota" in body)
        if status in (408, 409) or status >= 500:
            return ModelError(
                "MODEL_TIMEOUT" if status == 408 else "MODEL_UNAVAILABLE",
                message,
                category=ErrorCategory.TIMEOUT if status == 408 else ErrorCategory.NETWORK,
                retryable=True,
                user_guidance="try again later, or look at the server's log",
            )
        if status < 400:
            return ModelError(
                "MODEL_REFUSED_REQUEST",
                f"{self._server} answered {status}, a redirect to {location!r}",
                category=ErrorCategory.INVALID_INPUT,
                user_guidance=f"set {self._address} to the address it redirects to" if self._address else None,
            )
        return ModelError("MODEL_REFUSED_REQUEST", message, category=ErrorCategory.INVALID_INPUT)

    def _rate_limited(self, message: str, *, out_of_quota: bool) -> ModelError:
        return ModelError(
            "MODEL_RATE_LIMITED",
            message,
            category=ErrorCategory.RATE_LIMIT,
            retryable=not out_of_quota,
            user_guidance="check the account's plan and billing" if out_of_quota else "wait, or run less at once",
        )

    def _shorten(self, text: str) -> str:
        if self._secret:
            text = text.replace(self._secret, "***")
        text = " ".join(text.split())
        return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def readable(body: bytes) -> str:
    """What a server said, out of a JSON error, an HTML page or plain text."""
    try:
        value = from_json(body)
    except ValueError:
        return plain_text(body.decode("utf-8", "replace"))
    for key in ("error", "Error", "message", "Message", "detail"):
        if isinstance(value, dict) and value.get(key):
            value = value[key]
    return value if isinstance(value, str) else to_json(value).decode()


def plain_text(page: str) -> str:
    """The title of an HTML page or, without one, its text; other text as it is."""
    if "<" not in page:
        return page
    title = re.search(r"<title[^>]*>(.*?)</title>", page, re.IGNORECASE | re.DOTALL)
    without_code = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.IGNORECASE | re.DOTALL)
    return html.unescape(title[1] if title else re.sub(r"<[^>]*>", " ", without_code))


def retry_after(value: str | None, *, now: float) -> float | None:
    """The seconds a Retry-After header asks for: a number, or a date."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
