"""Everything that can go wrong on the way to a model server, as a ``ModelError`` that says what to do about it."""

from __future__ import annotations

import html
import re
from functools import partial
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.data import ERROR_BYTES
from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.sensitive.tokens import bare_url

SHOWN = 300
IN_NAME = "the address in the model's name"
"""Where the server's address is set, for models whose name holds it."""

_CODE = re.compile(r"<(script|style)\b.*?(?:</\1[^<>]*>?|\Z)", re.IGNORECASE | re.DOTALL)
"""One that is not closed goes on to the end."""
_TITLE = re.compile(r"<title[^<>]*>", re.IGNORECASE)
_TITLE_ENDS = re.compile("</title", re.IGNORECASE)
_TAG = re.compile("<[^<>]*>")


class Faults:
    """Writes the errors of one model at one server. Never shows the key, not even where the server repeats it.

    ``key`` and ``address`` name the environment variables that hold the two; ``address`` is empty where there is none.
    ``named_by`` is the variable that the model's name comes from, if one does.
    """

    named_by = ""

    def __init__(
        self, *, model: str, server: str, secret: str = "", key: str = "OPENAI_API_KEY", address: str = ""
    ) -> None:
        self._model = model
        self._server = server
        self._secret = secret
        self._key = key
        self._set_by = address

    @property
    def _address(self) -> str:
        return self.named_by if self._set_by == IN_NAME and self.named_by else self._set_by

    def no_key(self, reason: str = "") -> ModelError:
        server = self._server
        message = f"{server} cannot be used: {self._shorten(reason)}" if reason else f"no API key for {server}"
        keyless = f", or set {self._address} to a server that needs no key" if self._address else ""
        return _error("AUTHENTICATION", message, ErrorCategory.AUTHENTICATION, f"set {self._key}{keyless}")

    def timed_out(self, seconds: float) -> ModelError:
        message = f"{self._server} did not answer within {seconds:g} s"
        return _may_pass("TIMEOUT", message, ErrorCategory.TIMEOUT, "try again, or give the model more time")

    def unreachable(self, error: Exception) -> ModelError:
        message = f"cannot reach {self._server}: {self._shorten(str(error)) or type(error).__name__}"
        guidance = f"start the model server, or check {self._address}"
        if not self._address:
            guidance = "check the network connection, and whether the provider reports an outage"
        return _may_pass("UNAVAILABLE", message, ErrorCategory.NETWORK, guidance)

    def cut(self, reason: str = "") -> ModelError:
        message = f"{self._server} stopped in the middle of its answer{f': {reason}' if reason else ''}"
        guidance = "try again; if it happens often, look at the server's log"
        return _may_pass("UNAVAILABLE", message, ErrorCategory.NETWORK, guidance)

    def bad_answer(self, what: str, data: bytes = b"") -> ModelError:
        shown = self._shorten(readable(data))
        message = f"{self._server} answered with {what}" + (f": {shown!r}" if shown else "")
        guidance = f"check that {self._address} is the address of an OpenAI-compatible API; it often ends in /v1"
        if not self._address:
            guidance = "try again; if it happens often, name another model"
        return _error("BAD_ANSWER", message, ErrorCategory.SYSTEM_ERROR, guidance)

    def too_large(self, what: str) -> ModelError:
        guidance = "ask for less at a time; the limits are described in the documentation under 'Limits'"
        return _error("ANSWER_TOO_LARGE", f"{self._server} {what}", ErrorCategory.INVALID_INPUT, guidance)

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
        if out_of_quota or (status == 429 and b"insufficient_quota" in body):
            return _error("RATE_LIMITED", message, ErrorCategory.RATE_LIMIT, "check the account's plan and billing")
        if status == 429:
            return _may_pass("RATE_LIMITED", message, ErrorCategory.RATE_LIMIT, "wait, or run less at once")
        if status in (401, 403):
            guidance = f"check {self._key} and what the key may use"
            return _error("AUTHENTICATION", message, ErrorCategory.AUTHENTICATION, guidance)
        if status == 404:
            message = f"{message} (asked for model {self._model!r})"
            name = f"check the model's name{f' in {self.named_by}' if self.named_by else ''}"
            address = f", and that {self._address} is right; it often ends in /v1" if self._address else ""
            return _error("NOT_FOUND", message, ErrorCategory.INVALID_INPUT, name + address)
        if status in (408, 409) or status >= 500:
            code, category = "UNAVAILABLE", ErrorCategory.NETWORK
            if status == 408:
                code, category = "TIMEOUT", ErrorCategory.TIMEOUT
            return _may_pass(code, message, category, "try again later, or look at the server's log")
        if status < 400:
            message = f"{self._server} answered {status}, a redirect to {self._shorten(bare_url(location))!r}"
            guidance = f"set {self._address or 'its address'} to the address it redirects to"
            return _error("REFUSED_REQUEST", message, ErrorCategory.INVALID_INPUT, guidance)
        return _error("REFUSED_REQUEST", message, ErrorCategory.INVALID_INPUT, None)

    def _shorten(self, text: str) -> str:
        if self._secret:
            text = text.replace(self._secret, "***")
        text = " ".join(text.split())
        return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def _error(
    code: str, message: str, category: ErrorCategory, guidance: str | None, *, retryable: bool = False
) -> ModelError:
    return ModelError(f"MODEL_{code}", message, category=category, retryable=retryable, user_guidance=guidance)


_may_pass = partial(_error, retryable=True)


def readable(body: bytes) -> str:
    """What a server said, out of a JSON error, an HTML page or plain text. Only the beginning is read."""
    cut = len(body) >= ERROR_BYTES
    body = body[:ERROR_BYTES]
    try:
        value = from_json(body, allow_partial="trailing-strings" if cut else False)
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
    title = _TITLE.search(page)
    end = None if title is None else _TITLE_ENDS.search(page, title.end())
    text = _TAG.sub(" ", _CODE.sub(" ", page)) if title is None or end is None else page[title.end() : end.start()]
    # Cut first: more is never shown, and a number of thousands of digits is none that unescape() reads.
    return html.unescape(" ".join(text.split())[: 4 * SHOWN])
