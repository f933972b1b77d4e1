"""What the operator's page costs a browser: bytes, first paint, an answer of megabytes, a long conversation, many rows.

A real Chromium on this machine looks at a service on the loopback interface; its processor is slowed down as its own
tools do it. A list, an answer or a conversation is judged by the longest task of the page's thread.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from playwright.async_api import Browser, Page, async_playwright

from tests.doors.http.web.conftest import Site, chromium, opened
from tests.doors.http.web.many import fill

SLOWED = 4
REPETITIONS = 5
RUNS = 10_000
MESSAGES = 60
SETTLE_MS = 2_000
TARGETS = {
    "page_kb": 300,
    "first_paint_ms": 1_000,
    "answer_live_task_ms": 200,
    "answer_opened_task_ms": 200,
    "conversation_ms": 1_500,
    "conversation_task_ms": 200,
    "rows_task_ms": 50,
}
"""Of a task: the longest that the page's thread was at work without a pause, in time of the processor."""
TRACED = ["devtools.timeline", "toplevel"]
FIRST_PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === "first-contentful-paint") done(entry.startTime);
}).observe({type: "paint", buffered: true}))"""


@asynccontextmanager
async def longest_task(browser: Browser, page: Page, into: dict[str, float], name: str) -> AsyncIterator[None]:
    """How long a key could wait at most: in time of the processor, which other programs do not change."""
    await browser.start_tracing(page=page, categories=TRACED)
    yield
    await page.wait_for_timeout(SETTLE_MS)
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    drawing = {(one["pid"], one["tid"]) for one in events if one.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [
        one.get("tdur", 0) for one in events if one["name"].endswith("RunTask") and (one["pid"], one["tid"]) in drawing
    ]
    into[name] = max(tasks) / 1_000


@asynccontextmanager
async def looked_at(browser: Browser, *, slowed: float = SLOWED) -> AsyncIterator[Page]:
    """A page in a browser that has kept nothing, with a processor so many times slower."""
    context = await browser.new_context(viewport={"width": 1280, "height": 860})
    page = await context.new_page()
    page.set_default_timeout(120_000)
    session = await context.new_cdp_session(page)
    await session.send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    yield page
    await context.close()


async def first_paint(browser: Browser, site: Site) -> dict[str, float]:
    """Bytes as they are sent, and the time to the first words, of which the page's own first frame is one."""
    found, size = [], 0.0
    async with looked_at(browser) as page:
        sizes: list[int] = []

        async def took(response: object) -> None:
            sizes.append(len(await response.body()))  # type: ignore[attr-defined]

        page.on(
            "response", lambda response: asyncio.ensure_future(took(response)) if "/api/" not in response.url else None
        )
        await page.goto(site.url)
        await page.get_by_text("What should be done?").wait_for()
        size = sum(sizes) / 1_000
    for _ in range(REPETITIONS):
        async with looked_at(browser) as page:
            await page.goto(site.url)
            found.append(float(await page.evaluate(FIRST_PAINT)))
    return {"page_kb": size, "first_paint_ms": median(found)}


async def huge_answer(browser: Browser, site: Site) -> dict[str, float]:
    """An answer of five megabytes while one looks, and the same when its conversation is opened again."""
    found: dict[str, float] = {}
    async with looked_at(browser, slowed=1) as page:
        await page.goto(site.url)
        await page.get_by_label("Message").fill("Write a book")
        async with longest_task(browser, page, found, "answer_live_task_ms"):
            await page.keyboard.press("Enter")
            await page.locator("[data-answer]").wait_for()
        async with longest_task(browser, page, found, "answer_opened_task_ms"):
            await page.reload()
            await page.locator("[data-answer]").wait_for()
        found["answer_parts_drawn"] = await page.locator(".part").count()
    return found


async def conversation(browser: Browser, site: Site) -> dict[str, float]:
    """How long until the last of very many answers can be read."""
    found: dict[str, float] = {}
    times = []
    for number in range(MESSAGES):
        said = {"message": f"Please weigh apple {number}", "session_id": "long"}
        await site.client.post("/api/v1/chat", json=said, headers={"Accept": "application/json"})
    for _ in range(REPETITIONS):
        async with looked_at(browser) as page:
            await page.goto(f"{site.url}/#/chat/long")
            await page.locator(f"[aria-label$='apple {MESSAGES - 1}'] [data-answer]").wait_for()
            times.append(float(await page.evaluate("performance.now()")))
    async with looked_at(browser, slowed=1) as page, longest_task(browser, page, found, "conversation_task_ms"):
        await page.goto(f"{site.url}/#/chat/long")
        await page.locator(f"[aria-label$='apple {MESSAGES - 1}'] [data-answer]").wait_for()
    return {"conversation_ms": median(times), **found}


async def rows(browser: Browser, site: Site) -> dict[str, float]:
    """Scrolling through ten thousand runs, by the wheel and to the end."""
    found: dict[str, float] = {}
    await fill(site.service.store, RUNS)
    async with looked_at(browser, slowed=1) as page:
        await page.goto(f"{site.url}/#/runs")
        await page.get_by_text(f"{RUNS:,} runs").wait_for()
        await page.locator("[data-row='0']").wait_for()
        await page.mouse.move(700, 500)
        async with longest_task(browser, page, found, "rows_task_ms"):
            for _ in range(40):
                await page.mouse.wheel(0, 1_500)
                await page.wait_for_timeout(20)
            await page.locator("[data-row]").first.focus()
            await page.keyboard.press("End")
            await page.locator(f"[data-row='{RUNS - 1}']").wait_for()
    return found


PARTS: dict[str, Callable[[Browser, Site], Awaitable[dict[str, float]]]] = {
    "paint": first_paint,
    "answer": huge_answer,
    "conversation": conversation,
    "rows": rows,
}


async def measured(only: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    async with async_playwright() as playwright:
        browser = await chromium(playwright)
        for name, part in PARTS.items():
            if only and name not in only:
                continue
            with tempfile.TemporaryDirectory() as data:
                async with opened(Path(data)) as site:
                    found.update(await part(browser, site))
        await browser.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measured(options.only))
    missed = [name for name, most in TARGETS.items() if found.get(name, 0) > most]
    if options.json:
        print(json.dumps({"figures": found, "targets": TARGETS, "missed": missed}))
    else:
        for name, value in found.items():
            print(f"{name:32} {value:10,.0f}" + (f"   target ≤ {TARGETS[name]:,}" if name in TARGETS else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
