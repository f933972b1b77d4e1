"""The page in a real browser: pictures are pasted and dropped, and shown; nothing that could act is ever opened."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, expect

from journeyman import Agent, Document, Image, ToolLibrary, tool
from journeyman.models import OpenAIModel
from journeyman.testing import ScriptedServer, call, say
from tests.doors.http.web.conftest import PATIENCE_MS, Site, opened
from tests.doors.http.web.test_browser_chat import ask, card
from tests.pictures import png, seen, told

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
expect.set_options(timeout=PATIENCE_MS)

RED = png(200, width=3)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>document.title='broken into'</script></svg>"
PASTE = """async (data) => {
  const blob = new Blob([Uint8Array.from(data)], { type: "image/png" });
  await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
}"""
DROP = """([name, type, data]) => {
  const held = new DataTransfer();
  held.items.add(new File([Uint8Array.from(data)], name, { type }));
  const dropped = new DragEvent("drop", { dataTransfer: held, bubbles: true, cancelable: true });
  document.querySelector(".composer").dispatchEvent(dropped);
}"""


@tool(read_only=True)
def take_photo() -> dict[str, Any]:
    """Take a photo. Use when one is wanted."""
    return {"photo": Image.from_bytes(RED, name="photo.png"), "drawing": Document.from_bytes(SVG, name="drawing.svg")}


@asynccontextmanager
async def looking(folder: Path, *turns: Any) -> AsyncIterator[tuple[Site, ScriptedServer]]:
    library = ToolLibrary([take_photo])
    agent = Agent(name="camera", instruction="Look.", tools=[take_photo])
    async with ScriptedServer(turns) as model:
        seeing = OpenAIModel("gpt-4o", base_url=model.url)
        async with opened(folder, library=library, agents=[agent], model=seeing) as site:
            yield site, model


async def drop(page: Page, name: str, kind: str, data: bytes) -> None:
    await page.evaluate(DROP, [name, kind, list(data)])


async def test_a_model_gets_the_picture_that_a_person_pastes(
    page: Page, context: BrowserContext, tmp_path: Path
) -> None:
    async with looking(tmp_path, say("A dot."), say("Still a dot.")) as (site, model):
        await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
        await page.goto(site.url)
        await page.get_by_label("Message").fill("What is on it?")
        await page.evaluate(PASTE, list(RED))
        await page.keyboard.press("Control+V")
        await expect(page.get_by_role("list", name="Files to send")).to_contain_text(".png")
        await page.keyboard.press("Enter")
        await expect(page.locator("[data-answer]")).to_have_text("A dot.")
        [pasted] = seen(model.requests[0])  # the browser writes it anew
        assert pasted.startswith(b"\x89PNG")
        await expect(page.get_by_role("list", name="Files to send")).to_have_count(0)
        # It is shown with the message, from the store, also after the page was loaded again.
        for _ in range(2):
            await expect(page.locator(".asked img")).to_have_js_property("naturalWidth", 3)
            await page.reload()
        await page.get_by_role("button", name="Retry").click()
        await expect(page.locator("[data-answer]").last).to_have_text("Still a dot.")
        assert seen(model.requests[-1]) == [pasted, pasted]


async def test_what_is_dropped_goes_with_the_message_unless_it_is_removed(page: Page, tmp_path: Path) -> None:
    async with looking(tmp_path, say("A dot.")) as (site, model):
        await page.goto(site.url)
        await drop(page, "red.png", "image/png", RED)
        await drop(page, "blue.png", "image/png", png(20))
        await page.get_by_role("button", name="Remove blue.png").click()
        await ask(page, "What is on it?")
        await expect(page.locator("[data-answer]")).to_have_text("A dot.")
        assert seen(model.requests[0]) == [RED]
        await expect(page.get_by_role("button", name="red.png")).to_be_visible()


async def test_what_is_too_much_is_said_and_nothing_written_is_lost(page: Page, tmp_path: Path) -> None:
    async with looking(tmp_path, say("ok")) as (site, model):
        await page.goto(site.url)
        await page.get_by_label("Message").fill("What is on it?")
        await page.evaluate(
            """() => {
              const held = new DataTransfer();
              held.items.add(new File([new Uint8Array(10_000_001)], "huge.bin"));
              const dropped = new DragEvent("drop", { dataTransfer: held, bubbles: true });
              document.querySelector(".composer").dispatchEvent(dropped);
            }"""
        )
        await expect(page.get_by_role("alert")).to_contain_text("huge.bin has 10.0 MB")
        await expect(page.get_by_label("Message")).to_have_value("What is on it?")
        assert model.requests == []


async def test_pictures_of_results_are_shown_and_drawings_with_scripts_are_files(page: Page, tmp_path: Path) -> None:
    async with looking(tmp_path, call("take_photo"), say("Done.")) as (site, model):
        await page.goto(site.url)
        await drop(page, "evil.svg", "image/svg+xml", SVG)
        await drop(page, "page.png", "image/png", b"<html><script>document.title='broken into'</script></html>")
        await ask(page, "Take one")
        await expect(page.locator("[data-answer]")).to_have_text("Done.")
        assert "[file evil.svg, image/svg+xml" in told(model.requests[0])
        assert "[file page.png, application/octet-stream" in told(model.requests[0])
        await card(page, "take_photo").locator("summary").click()
        shown = card(page, "take_photo").locator(".media")
        await expect(shown.locator("img")).to_have_js_property("naturalWidth", 3)
        await expect(shown.locator("img")).to_have_count(1)
        # Of what the person sent, nothing is drawn once the service has told what it is.
        await page.reload()
        await expect(page.locator(".asked").get_by_role("button", name="page.png")).to_be_visible()
        assert await page.locator(".asked img, main iframe, main object, main embed, main svg script").count() == 0
        async with page.expect_download() as saving:
            await page.locator(".asked").get_by_role("button", name="evil.svg").click()
        saved = await (await saving.value).path()
        assert saved.read_bytes() == SVG
        assert "broken into" not in await page.title()


async def test_the_api_serves_no_picture_as_anything_that_acts(page: Page, tmp_path: Path) -> None:
    async with looking(tmp_path, say("ok")) as (site, _):
        given = {
            "message": "x",
            "session_id": "s",
            "media": [{"data": base64.b64encode(SVG).decode(), "name": "a.svg"}],
        }
        await site.client.post("/api/v1/chat", json=given, headers={"Accept": "application/json"})
        [medium] = (await site.client.get("/api/v1/chat/history/s")).json()["messages"][0]["media"]
        address = f"/api/v1/runs/{medium['run_id']}/artifacts/{medium['artifact']}"
        answer = await site.client.get(address)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        await page.goto(f"{site.url}{address}")
        assert await page.locator("svg, script").count() == 0
