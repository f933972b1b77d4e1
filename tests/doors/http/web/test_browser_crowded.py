"""Every view with very much in it, in every script and without a place to break, on screens wide and narrow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.doors.http.web.conftest import PATIENCE_MS, Site
from tests.doors.http.web.pictures import PAGES, TOO_WIDE, begin, crowded
from tests.doors.http.web.test_browser_chat import opened_at
from tests.doors.http.web.test_browser_pages import violations

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
MANY = 60
CONVERSATIONS = 10
SEEN = """[...document.querySelectorAll(".conversations li")].filter((one) => {
    const {top, bottom} = one.getBoundingClientRect(), room = one.closest(".conversations").getBoundingClientRect();
    return top >= room.top && bottom <= room.bottom;
}).length"""
NAMELESS = """[...document.querySelectorAll("a, button, input, select, textarea, summary, [role=img]")].filter((one) =>
    one.checkVisibility({contentVisibilityAuto: true}) &&
    !(one.ariaLabel || one.labels?.length || one.title || one.innerText?.trim())).length"""


@pytest_asyncio.fixture(loop_scope="module")
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with crowded(tmp_path, MANY) as found:
        yield found


async def test_every_view_fits_whatever_people_write(browser: Browser, site: Site) -> None:
    shown = {name: name for name in PAGES} | await begin(browser, site)
    for width, height in ((375, 740), (1280, 860)):
        page = await browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE_MS)
        for name, path in shown.items():
            await opened_at(page, site, f"#/{path}")
            await expect(page.locator("main :is(h1, .welcome)").first).to_be_attached()
            await expect(page.locator("main .loading-row, main .loading")).to_have_count(0)
            wide, tall = await page.evaluate(TOO_WIDE)
            assert (wide, tall) == (0, []), (name, width)
            assert await page.evaluate(NAMELESS) == 0, (name, width)
            assert await violations(page) == [], (name, width)
        await page.close()


async def test_a_new_conversation_begins_at_its_top_on_a_low_screen(page: Page, site: Site) -> None:
    await page.set_viewport_size({"width": 375, "height": 560})
    await opened_at(page, site)
    await expect(page.get_by_text("Answers come from")).to_be_attached()
    await expect(page.get_by_text("What should be done?").first).to_be_in_viewport()


async def test_ten_conversations_are_seen_on_a_low_screen(page: Page, site: Site) -> None:
    await page.set_viewport_size({"width": 1280, "height": 860})
    await opened_at(page, site, "#/runs")
    await expect(page.locator(".conversations li")).to_have_count(20)
    assert await page.evaluate(SEEN) >= CONVERSATIONS


async def test_the_page_says_that_the_service_is_gone_and_comes_back(page: Page, site: Site) -> None:
    await opened_at(page, site, "#/runs")
    rows = page.get_by_role("list", name="Runs").get_by_role("link")
    await expect(rows.first).to_be_visible()
    site.cable.cut()
    gone = page.get_by_text("The service cannot be reached").first
    await expect(gone).to_be_visible()
    await expect(rows.first).to_be_visible()  # what was seen stays
    for path in ("tasks", "tools", "memory", "gaps", "audit", "playbooks", "experiments", "approvals", "configuration"):
        await page.evaluate(f"location.hash = '#/{path}'")
        await expect(page.get_by_role("main").get_by_text("The service cannot be reached").first).to_be_visible()
    site.cable.mend()
    await expect(page.get_by_text("The service cannot be reached")).to_have_count(0)
    await expect(page.locator("main .card").first).to_be_visible()
