"""What the service answers at '/' and for the files of its page."""

from __future__ import annotations

import re
from pathlib import Path

from tests.doors.http.serving import served


async def test_the_page_allows_nothing_from_elsewhere(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        page = await client.get("/")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert re.findall(r"https?://(?!www\.w3\.org)", page.text) == []
        assert page.headers["x-content-type-options"] == "nosniff"


async def test_files_are_kept_by_browsers_until_they_change(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        page = await client.get("/")
        names = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page.text)
        assert [name.partition("?")[0] for name in names] == ["/assets/style.css", "/assets/app.js"]
        for name, kind in zip(names, ("text/css", "text/javascript"), strict=True):
            file = await client.get(name)
            assert file.headers["content-type"] == f"{kind}; charset=utf-8"
            assert "immutable" in file.headers["cache-control"]
            assert file.headers["content-encoding"] == "gzip"
            plain = await client.get(name, headers={"Accept-Encoding": "identity"})
            assert plain.content == file.content
            assert "content-encoding" not in plain.headers
            other = await client.get(name.partition("?")[0] + "?v=older")
            assert other.headers["cache-control"] == "no-cache"
        assert page.headers["cache-control"] == "no-cache"
        again = await client.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        gone = await client.get("/assets/other.js")
        assert (gone.status_code, gone.json()["code"]) == (404, "NOT_FOUND")


async def test_the_page_is_small(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        packed = 0
        whole = 0
        for name in ("", "assets/app.js", "assets/style.css"):
            file = await client.get(f"/{name}")
            packed += int(file.headers["content-length"])
            whole += len(file.content)
        assert packed < 80_000, "as it travels"
        assert whole < 300_000
