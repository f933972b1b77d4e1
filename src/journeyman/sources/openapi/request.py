"""Arguments as a request: in the path, the query, headers, cookies and the body, in the style that each one wants."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from journeyman.core.data import canonical_json
from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.sources.openapi.document import Body, Operation, Placed

if TYPE_CHECKING:
    import aiohttp

_RESERVED = ":/?[]@!$'()*,;"
_PATH = "/:@!$&'()*+,;=~%"


@dataclass(slots=True)
class Request:
    """What is sent; ``path`` and ``query`` are encoded."""

    path: str = ""
    query: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    data: bytes | aiohttp.FormData | None = None


def made_request(operation: Operation, values: Mapping[str, Any]) -> Request:
    """The request of one call. Raises ToolError where a value cannot stand where it must."""
    request = Request()
    in_path: dict[str, str] = {}
    for item in operation.placed:
        value = values.get(item.argument)
        if value is None:
            continue
        if item.place == "path":
            in_path[item.name] = _path_value(item, value)
        elif item.place == "header":
            request.headers[item.name] = _header(item, _simple(item, value, str))
        else:
            pairs = _pairs(item, value)
            (request.query if item.place == "query" else request.cookies).extend(pairs)
    request.path = re.sub(
        r"\{([^{}]+)\}|[^{}]+|[{}]",
        lambda found: in_path.get(found[1], "") if found[1] else quote(found[0], safe=_PATH),
        operation.path,
    )
    if operation.body is not None:
        _write(operation.body, values, request)
    return request


# --- parameters


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return canonical_json(value)  # true, 1.5, null; and what is nested where no style says how


def _encoded(value: Any, *, reserved: bool = False) -> str:
    return quote(_text(value), safe=_RESERVED if reserved else "")


def _pairs(item: Placed, value: Any) -> Iterator[str]:
    """``name=value``, as often as it takes."""
    name = quote(item.name, safe="")

    def text(one: Any) -> str:
        return _encoded(one, reserved=item.reserved)

    if item.json:
        yield f"{name}={text(canonical_json(value))}"
    elif item.style == "deepObject" and isinstance(value, dict):
        yield from (f"{name}{key}={text(one)}" for key, one in _deep(value))
    elif isinstance(value, dict):
        if item.explode:
            yield from (f"{quote(key, safe='')}={text(one)}" for key, one in value.items())
        else:
            yield f"{name}={','.join(part for key, one in value.items() for part in (text(key), text(one)))}"
    elif isinstance(value, list):
        if item.explode:
            yield from (f"{name}={text(one)}" for one in value)
        elif value:
            between = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}.get(item.style, ",")
            yield f"{name}={between.join(map(text, value))}"
    else:
        yield f"{name}={text(value)}"


def _deep(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, one in value.items():
        step = f"%5B{quote(key, safe='')}%5D"
        if isinstance(one, dict):
            yield from ((f"{step}{rest}", inner) for rest, inner in _deep(one))
        elif isinstance(one, list):
            yield from ((step, inner) for inner in one)
        else:
            yield step, one


def _simple(item: Placed, value: Any, encode: Any, between: str = ",", equals: str = "=") -> str:
    if item.json:
        return str(encode(canonical_json(value)))
    if isinstance(value, dict):
        pairs = ((encode(_text(key)), encode(_text(one))) for key, one in value.items())
        if item.explode:
            return between.join(f"{key}{equals}{one}" for key, one in pairs)
        return ",".join(part for pair in pairs for part in pair)
    if isinstance(value, list):
        return (between if item.explode else ",").join(encode(_text(one)) for one in value)
    return str(encode(_text(value)))


def _path_value(item: Placed, value: Any) -> str:
    # Nothing, or dots, would make it another address: of the whole collection, or of what is above.
    for one in value if isinstance(value, list) else [value]:
        if _text(one).strip() in ("", ".", ".."):
            raise _unusable(item, "must not be empty, '.' or '..'")
    if item.style == "label":
        return f".{_simple(item, value, _encoded, '.' if item.explode else ',')}"
    if item.style != "matrix":
        return _simple(item, value, _encoded)
    name = quote(item.name, safe="")
    if isinstance(value, dict) and item.explode:
        return f";{_simple(item, value, _encoded, ';')}"
    if isinstance(value, list) and item.explode:
        return "".join(f";{name}={_encoded(one)}" for one in value)
    return f";{name}={_simple(item, value, _encoded)}"


def _header(item: Placed, text: str) -> str:
    if any(character < " " or character == "\x7f" for character in text):
        raise _unusable(item, "must not hold line breaks or control characters")
    return text


def _unusable(item: Placed, why: str) -> ToolError:
    return ToolError(
        "INVALID_ARGUMENT",
        f"{item.argument!r} {why}",
        category=ErrorCategory.INVALID_INPUT,
        recover_action="Call it again with another value",
    )


# --- bodies


def _write(body: Body, values: Mapping[str, Any], request: Request) -> None:
    if body.fields is None:
        if (whole := values.get(body.argument)) is None:
            return
        fields = whole.items() if isinstance(whole, dict) else ()
        given = [(Placed(body.argument, name, "body"), value) for name, value in fields]
    else:
        given = [(item, values[item.argument]) for item in body.fields if item.argument in values]
        whole = {item.name: value for item, value in given}
        if not whole and body.kind != "json":
            return
    if body.kind == "multipart":
        request.data = _multipart(given)
        return
    request.headers["Content-Type"] = body.media_type if "*" not in body.media_type else "application/json"
    if body.kind == "json":
        request.data = canonical_json(whole).encode()
    elif body.kind == "form":
        request.data = "&".join(
            pair for item, value in given if value is not None for pair in _pairs(item, value)
        ).encode()
    elif body.kind == "text":
        request.data = str(whole).encode()
    else:
        request.data, _, media = _file(whole, body.argument)
        if media and "*" in body.media_type:
            request.headers["Content-Type"] = media


def _multipart(given: list[tuple[Placed, Any]]) -> aiohttp.FormData:
    import aiohttp

    form = aiohttp.FormData(default_to_multipart=True)
    for item, value in given:
        for one in value if isinstance(value, list) and not item.json else [value]:
            if isinstance(one, dict) and one.keys() <= {"filename", "mime_type", "text", "data"} and not item.json:
                data, name, media = _file(one, item.argument)
                form.add_field(item.name, data, filename=name or item.name, content_type=media)
            elif isinstance(one, dict | list) or item.json:
                form.add_field(item.name, canonical_json(one), content_type="application/json")
            elif one is not None:
                form.add_field(item.name, _text(one))
    return form


def _file(value: Any, argument: str) -> tuple[bytes, str, str]:
    """A file's bytes, name and media type."""
    given = value if isinstance(value, dict) else {"text": _text(value)}
    name, media = str(given.get("filename", "")), str(given.get("mime_type", "application/octet-stream"))
    if re.search(r"[\x00-\x1f\x7f]", name + media):
        raise _unusable(Placed(argument, argument, "body"), "has control characters in its name or type")
    if "text" in given:
        return str(given["text"]).encode(), name, media
    try:
        return b64decode(given.get("data", ""), validate=True), name, media
    except ValueError:
        raise _unusable(Placed(argument, argument, "body"), "holds data that is not base64") from None
