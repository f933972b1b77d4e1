"""A real browser, a real service behind a connection that can be cut, and a page that must not complain.

Without a browser these tests fail: `make test` installs one where it can. SKIP_BROWSER=1 leaves them out.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, Playwright, async_playwright

from journeyman.app.service import Service
from tests.doors.http.serving import served
from tests.doors.http.web.cable import Cable
from tests.doors.http.web.scenes import Clerk, Shop, clerk
from tests.waiting import WAIT_SECONDS

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DESKTOP = {"width": 1200, "height": 820}
PATIENCE_MS = WAIT_SECONDS * 1_000


@dataclass(frozen=True)
class Site:
    """The service as a browser sees it."""

    url: str
    shop: Shop
    service: Service
    cable: Cable
    client: httpx.AsyncClient


# A browser belongs to the event loop it was started in, so the tests of a module share one loop.
@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    if os.environ.get("SKIP_BROWSER") == "1":
        pytest.skip("SKIP_BROWSER=1")
    async with async_playwright() as playwright:
        started = await chromium(playwright)
        yield started
        await started.close()


async def chromium(playwright: Playwright) -> Browser:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail("no browser: install chromium (Debian: apt-get install chromium), or set SKIP_BROWSER=1")
    # Chromium refuses its sandbox to root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    return await playwright.chromium.launch(executable_path=found, args=options)


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[Site]:
    """A shop with its clerk, or whatever the options say, behind a cable."""
    shop = Shop()
    if "library" not in options and "split" not in options:
        options["library"] = shop.library()
        options.setdefault("agents", [clerk(options["library"])])
    options.setdefault("model", Clerk(shop))
    async with (
        served(folder, **options) as server,
        Cable.to(server.url) as cable,
        httpx.AsyncClient(base_url=server.url, timeout=WAIT_SECONDS) as client,
    ):
        try:
            yield Site(cable.url, shop, server.service, cable, client)
        finally:
            shop.go.set()


@pytest_asyncio.fixture(loop_scope="module")
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with opened(tmp_path) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    made = await browser.new_context(viewport=DESKTOP)  # type: ignore[arg-type]  # a dict is a size
    made.set_default_timeout(PATIENCE_MS)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(context: BrowserContext) -> AsyncIterator[Page]:
    """A page that runs nothing it should not: in the end it has neither failed nor asked anybody else for anything."""
    made = await context.new_page()
    complaints: list[str] = []
    hosts: set[str] = set()
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on("console", lambda said: complaints.append(said.text) if "Content Security Policy" in said.text else None)
    made.on("request", lambda request: hosts.add(request.url.split("/")[2]) if "://" in request.url else None)
    yield made
    # Nobody is to ask the service while it goes down.
    await made.goto("about:blank")
    await asyncio.sleep(0)
    assert complaints == []
    assert all(host.startswith("127.0.0.1:") for host in hosts), hosts
