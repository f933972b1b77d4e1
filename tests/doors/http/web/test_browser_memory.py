"""The page of memory in a real browser: documents are added, found, listed and forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from journeyman.core.policy import Principal
from journeyman.doors.http import Tokens
from tests.doors.http.web.conftest import Site, opened
from tests.doors.http.web.test_browser_chat import opened_at

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
DOCUMENTS = "/api/v1/memory/documents"


async def test_documents_are_added_found_and_forgotten(page: Page, site: Site) -> None:
    rows = page.locator(".remembered")
    await opened_at(page, site, "#/memory")
    await expect(page.get_by_text("Nothing is remembered yet")).to_be_visible()
    for text in ("Order W-17 was sent on Monday.", "<b>The dentist</b> moved to Thursday."):
        await page.get_by_label("Remember").fill(text)
        await page.get_by_role("button", name="Add").click()
        await expect(rows.first).to_contain_text(text)
    await expect(rows).to_have_count(2)
    await page.get_by_label("Search memory").fill("Where is W-17?")
    await expect(rows.first).to_contain_text("Order W-17")
    await rows.first.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Forget this?")
    await dialog.get_by_role("button", name="Keep").click()
    assert (await site.client.get(DOCUMENTS)).json()["total"] == 2
    await rows.first.get_by_role("button", name="Delete").click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("Order W-17 was sent")).to_have_count(0)
    await page.get_by_label("Search memory").fill("")
    await expect(rows).to_have_count(1)
    [left] = (await site.client.get(DOCUMENTS)).json()["documents"]
    assert left["text"].startswith("<b>The dentist")


async def test_who_may_not_change_memory_looks_at_it(page: Page, tmp_path: Path) -> None:
    async with opened(tmp_path, tokens=Tokens({"a-token-for-bob-1": Principal("bob")})) as site:
        await site.service.app.memory.store_document("Bob's note", principal="bob")
        await site.service.app.memory.store_document("Ada's note", principal="ada")
        await opened_at(page, site, "#/memory")
        await page.get_by_label("Token").fill("a-token-for-bob-1")
        await page.keyboard.press("Enter")
        await expect(page.locator(".remembered")).to_have_count(1)
        await expect(page.get_by_role("main")).to_contain_text("Bob's note")
        await expect(page.get_by_role("main")).to_contain_text("You may look, and change nothing")
        await expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
