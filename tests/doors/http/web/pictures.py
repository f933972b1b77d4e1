"""Takes the pictures of the page that the documentation shows: ``python -m tests.doors.http.web.pictures FOLDER``."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, async_playwright

from tests.doors.http.web.conftest import Site, chromium, opened

DESKTOP = (1120, 860)
PHONE = (390, 800)


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
        await page.locator(".decision button.danger").click()
        await page.wait_for_selector(".run[data-status=completed] >> nth=1")
    await page.close()


async def ask(page: Page, text: str) -> None:
    await page.get_by_label("Message").fill(text)
    await page.keyboard.press("Enter")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
