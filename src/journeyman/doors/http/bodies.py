"""What a body must be before a route reads it: JSON, of texts and numbers that can be kept and said again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from journeyman.core.data import canonical_json
from journeyman.doors.http.errors import FieldError, Problem

_LONGEST_NAME = 200


class Body(BaseModel):
    """A body of ours. A field that nobody knows is an error and not a silent default."""

    model_config = ConfigDict(extra="forbid")


class JsonRoute(APIRoute):
    """A route whose body is read here."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler

        async def handled(request: Request) -> Response:
            return await handler(_JsonRequest(request.scope, request.receive))

        return handled


class _JsonRequest(Request):
    _read: Any = None

    async def body(self) -> bytes:
        found = await super().body()
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if found and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise Problem(
                415,
                "UNSUPPORTED_MEDIA_TYPE",
                f"the body must be JSON (application/json), and is said to be {kind!r}",
                recover_action="Send the header 'Content-Type: application/json'",
            )
        return found

    async def json(self) -> Any:
        if self._read is None:
            self._read = read_json(await self.body())
        return self._read


def read_json(data: bytes) -> Any:
    """The value of a body. Raises a Problem that names the place of what nobody could keep."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise _refused("body", "it is nested too deeply") from None
    except ValueError as error:
        raise _refused("body", f"it is not JSON that can be read: {error}") from None
    try:
        # Quick, and refuses just what must be refused. Where that is need only be known if there is something.
        canonical_json(value).encode()
    except RecursionError:
        raise _refused("body", "it is nested too deeply") from None
    except ValueError:
        raise _refused(*_unsayable(value)) from None
    return value


def _unsayable(value: Any) -> tuple[str, str]:
    """Where the first text or number is that no JSON can say, and what is wrong with it."""
    left = [("", value)]
    while left:
        place, item = left.pop()
        held: list[tuple[str, Any]] = []
        if isinstance(item, dict):
            for key, inner in item.items():
                held += [(place, key), (f"{place}.{key}", inner)]
        elif isinstance(item, list):
            held = [(f"{place}.{number}", inner) for number, inner in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            return place, f"{item} is no number that JSON has"
        elif isinstance(item, str) and any("\ud800" <= character <= "\udfff" for character in item):
            return place, "half of a surrogate pair is no text"
        left += reversed(held)
    return "", "it holds something that JSON cannot say"


def _refused(place: str, message: str) -> Problem:
    name = place.removeprefix(".")[:_LONGEST_NAME] or "body"
    return Problem(422, "VALIDATION_ERROR", f"{name}: {message}", fields=[FieldError(field=name, message=message)])
