"""Takes pictures of the page: ``python -m tests.doors.http.web.pictures FOLDER`` for the documentation's.

With ``--views`` every view with none, three and ten thousand rows, light and dark, wide and narrow: to be looked at.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Page, async_playwright

from journeyman import ToolLibrary
from tests.doors.http.web.conftest import Site, chromium, opened
from tests.doors.http.web.many import fill, fill_lists, tools
from tests.doors.http.web.scenes import Clerk, Shop, clerk

DESKTOP = (1120, 860)
PHONE = (390, 800)
LOOKS: tuple[tuple[Literal["light", "dark"], tuple[int, int]], ...] = (
    ("light", (1280, 860)),
    ("dark", (1280, 860)),
    ("light", (375, 740)),
    ("dark", (375, 740)),
)
SETTLE_MS = 1_000
AMOUNTS = (0, 3, 10_000)
PAGES: tuple[str, ...] = (
    "chat",
    "runs",
    "approvals",
    "approvals?list=decided",
    "approvals?list=expired",
    "tasks",
    "tasks/new",
    "tools",
)
PAGES += ("tools/lookup_order", "memory", "playbooks", "experiments", "gaps", "audit", "configuration", "nowhere")
TOO_WIDE = """[document.documentElement.scrollWidth - innerWidth, [...document.querySelectorAll("main .list > li")]
    .filter((row) => row.offsetHeight > 240).map((row) => row.innerText.slice(0, 60))]"""
"""What sticks out of a page at its side, and rows of lists that are too tall to be looked through."""


async def views(folder: Path, amounts: tuple[int, ...] = AMOUNTS, only: str = "") -> None:
    """Every view in every look, with so many of everything; says what is too wide or too tall."""
    async with async_playwright() as playwright:
        browser = await chromium(playwright)
        for many in amounts:
            with tempfile.TemporaryDirectory() as data:
                async with crowded(Path(data), many) as site:
                    shown = {name: name for name in PAGES}
                    if many:
                        shown.update(await begin(browser, site))
                    for colours, (width, height) in LOOKS:
                        page = await browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)
                        for name, path in shown.items():
                            if only not in name:
                                continue
                            await page.goto(f"{site.url}/#/{path}")
                            await page.wait_for_timeout(SETTLE_MS)
                            file = f"{name.replace('/', '-').replace('?list=', '-')}-{many}-{width}-{colours}.png"
                            await page.screenshot(path=folder / file)
                            wide, tall = await page.evaluate(TOO_WIDE)
                            if wide > 0 or tall:
                                print(f"{file}: {wide} px too wide, rows too tall: {tall}")
                        await page.close()
        await browser.close()


@asynccontextmanager
async def crowded(folder: Path, many: int) -> AsyncIterator[Site]:
    """A service with so much of everything."""
    shop = Shop()
    library = ToolLibrary([*shop.library(), *tools(min(many, 300))])
    async with opened(folder, library=library, agents=[clerk(library)], model=Clerk(shop)) as site:
        if many:
            await fill(site.service.store, many)
            await fill_lists(site.service, many)
        yield site


async def begin(browser: Browser, site: Site) -> dict[str, str]:
    """A conversation, its runs, and one of everything, by the names of their pictures."""
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
    queued, waiting, done = (run["id"] for run in runs)
    gap = (await site.client.get("/api/v1/gaps")).json()["gaps"][0]["key"]
    return {
        "a conversation": f"chat/{session}",
        "a queued run": f"runs/{queued}",
        "a waiting run": f"runs/{waiting}",
        "a run": f"runs/{done}",
        "two runs": f"runs/{done}..{waiting}",
        "nothing found": "runs?q=nothing+like+this",
        "a task": "tasks/task_00002",
        "a playbook": "playbooks/domain%200",
        "an experiment": "experiments/exp_1",
        "a gap": f"gaps/{gap}",
    }


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
    folder = Path(next(word for word in sys.argv[1:] if word != "--views"))
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run((views if "--views" in sys.argv else main)(folder))
