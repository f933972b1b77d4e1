"""Takes pictures of the page: ``python -m tests.doors.http.web.pictures FOLDER`` for the documentation's.

With ``--views`` every view with none, three and ten thousand runs, light and dark, wide and narrow: to be looked at.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, async_playwright

from journeyman.choosing import ToolGapReport
from tests.doors.http.web.conftest import Site, chromium, opened
from tests.doors.http.web.many import fill

DESKTOP = (1120, 860)
PHONE = (390, 800)
LOOKS: tuple[tuple[Literal["light", "dark"], tuple[int, int]], ...] = (
    ("light", (1280, 860)),
    ("dark", (1280, 860)),
    ("light", (375, 740)),
    ("dark", (375, 740)),
)
VIEWS: tuple[str, ...] = (
    "chat",
    "runs",
    "approvals",
    "approvals?list=decided",
    "tasks",
    "tools",
    "tools/lookup_order",
    "memory",
)
VIEWS += ("playbooks", "experiments", "gaps", "audit", "configuration")
SETTLE_MS = 1_000
AMOUNTS = (0, 3, 10_000)


async def views(folder: Path, amounts: tuple[int, ...] = AMOUNTS, names: tuple[str, ...] = VIEWS) -> None:
    """Every view in every look, with so many runs."""
    async with async_playwright() as playwright:
        browser = await chromium(playwright)
        for many in amounts:
            with tempfile.TemporaryDirectory() as data:
                async with opened(Path(data)) as site:
                    shown = names
                    if many:
                        await fill(site.service.store, many)
                        shown = (*names, *await begin(browser, site))
                    for colours, (width, height) in LOOKS:
                        page = await browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
                        for path in shown:
                            await page.goto(f"{site.url}/#/{path}")
                            await page.wait_for_timeout(SETTLE_MS)
                            name = path.replace("/", "-").replace("?", "-").replace("=", "-")[:24]
                            await page.screenshot(path=folder / f"{name}-{many}-{width}-{colours}.png")
                        await page.close()
        await browser.close()


async def begin(browser: Browser, site: Site) -> tuple[str, ...]:
    """Something of everything; returns where a conversation and its runs are."""
    await site.client.post("/api/v1/tasks", json={"title": "Review the plan", "tags": ["work"], "priority": "high"})
    await site.client.post("/api/v1/memory/documents", json={"text": "The dentist moved to Thursday."})
    report = ToolGapReport(
        missing_tools=("book flight",), attempted_task="Fly to Oslo", existing_tools_checked=("weigh",)
    )
    await site.service.store.gaps.add(report, now=1_790_000_000, principal_id="ada")
    page = await browser.new_page()
    await page.goto(site.url)
    await ask(page, "Please weigh an apple and look up the orders")
    await page.wait_for_selector("[data-answer]")
    await ask(page, "Delete order W-17")
    await page.wait_for_selector(".decision")
    await ask(page, "Count the stock")
    await page.wait_for_selector(".exchange >> nth=2")
    session = page.url.rpartition("/")[2]
    await page.close()
    runs = (await site.client.get("/api/v1/runs", params={"session_id": session})).json()["runs"]
    return f"chat/{session}", *(f"runs/{run['id']}" for run in runs), f"runs/{runs[0]['id']}..{runs[2]['id']}"


async def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as data:
        async with async_playwright() as playwright, opened(Path(data)) as site:
            browser = await chromium(playwright)
            await take(browser, site, folder, "light", DESKTOP)
            await take(browser, site, folder, "dark", DESKTOP)
            await take(browser, site, folder, "light", PHONE)
            await browser.close()


async def take(
    browser: Browser, site: Site, folder: Path, colours: Literal["light", "dark"], size: tuple[int, int]
) -> None:
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=colours)
    name = f"page-{colours}" if size == DESKTOP else "page-phone"
    await page.goto(site.url)
    await ask(page, "Please weigh an apple and look up the orders")
    await page.wait_for_selector("[data-answer]")
    await ask(page, "Delete order W-17")
    await page.wait_for_selector(".decision")
    await page.wait_for_selector(".conversations li", state="attached")
    await page.screenshot(path=folder / f"{name}-approval.png")
    if colours == "light" and size == DESKTOP:
        await page.locator(".decision button.primary").click()
        await page.wait_for_selector(".run[data-status=completed] >> nth=1")
        await page.evaluate("scrollTo(0, 0)")
        await page.screenshot(path=folder / f"{name}-chat.png")
        await page.goto(f"{site.url}/#/tools")
        await page.wait_for_selector(".spark")
        await page.screenshot(path=folder / f"{name}-tools.png", clip={"x": 0, "y": 0, "width": size[0], "height": 420})
        await page.goto(f"{site.url}/#/runs")
        await page.locator(".line", has_text="Delete").first.click()
        await page.wait_for_selector(".timeline li")
        await page.screenshot(path=folder / f"{name}-run.png", clip={"x": 0, "y": 0, "width": size[0], "height": 620})
    else:
        await page.locator(".decision button.danger").click()
        await page.get_by_label("Why not?").fill("It has left the house")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".run[data-status=completed] >> nth=1")
    await page.close()


async def ask(page: Page, text: str) -> None:
    await page.get_by_label("Message").fill(text)
    await page.keyboard.press("Enter")


if __name__ == "__main__":
    asyncio.run((views if "--views" in sys.argv else main)(Path(sys.argv[1])))
