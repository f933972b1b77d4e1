"""The page at ``/``: one document, one script, one style sheet, built from ``web/`` at the project's root.

Everything it shows it asks of the API; nothing here knows what that is.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from journeyman.doors.http.errors import Problem

router = APIRouter(include_in_schema=False)

# Nothing from elsewhere, no code and no style but ours, no HTML made of text, in nobody's frame.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_KINDS = {"app.js": "text/javascript; charset=utf-8", "style.css": "text/css; charset=utf-8"}
_FOREVER = "public, max-age=31536000, immutable"


class _File:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.packed = gzip.compress(content, mtime=0)
        self.digest = hashlib.sha256(content).hexdigest()[:16]


@cache
def _file(name: str) -> _File:
    return _File((files(__name__) / "static" / name).read_bytes())


@cache
def _page(root: str) -> _File:
    content = _file("index.html").content
    # An address that changes with the content lets browsers keep what it names.
    for asset in _KINDS:
        content = content.replace(
            f"/assets/{asset}".encode(), f"{root}/assets/{asset}?v={_file(asset).digest}".encode()
        )
    return _File(content)


@router.get("/")
async def page(request: Request) -> Response:
    headers = {
        "Content-Security-Policy": POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
    return _answer(request, _page(request.scope.get("root_path", "")), "text/html; charset=utf-8", headers)


@router.get("/assets/{name}")
async def asset(request: Request, name: str, v: str = "") -> Response:
    if name not in _KINDS:
        raise Problem(404, "NOT_FOUND", f"there is no file {name!r}")
    file = _file(name)
    cached = _FOREVER if v == file.digest else "no-cache"
    return _answer(request, file, _KINDS[name], {"Cache-Control": cached})


def _answer(request: Request, file: _File, kind: str, headers: dict[str, str]) -> Response:
    headers = {**headers, "ETag": f'"{file.digest}"', "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(file.packed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
    return Response(file.content, media_type=kind, headers=headers)
