"""Rating an answer in a real browser, and what the card of an approval says of its arguments."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.doors.http.web.conftest import Site
from tests.doors.http.web.test_browser_chat import ask, opened_at

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


async def test_an_answer_is_rated_with_a_thumb_and_the_run_remembers(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Transfer the rent")
    card = page.get_by_role("region", name="Approval needed: transfer")
    await expect(card).to_contain_text("found nowhere")
    await expect(card).to_contain_text("The model may have invented it")
    await card.get_by_role("button", name="Deny…").click()
    await card.get_by_label("Why not?").fill("Not this month")
    await card.get_by_role("button", name="Deny").click()
    await expect(page.locator("[data-answer]")).to_be_visible()
    wrong = page.get_by_role("button", name="This was wrong")
    await wrong.click()
    await expect(wrong).to_have_attribute("aria-pressed", "true")
    right = page.get_by_role("button", name="This was right")
    await right.click()
    await expect(right).to_have_attribute("aria-pressed", "true")
    await expect(wrong).to_have_attribute("aria-pressed", "false")
    await page.get_by_role("link", name="Timeline of this run").click()
    await page.reload()
    await expect(page.get_by_role("button", name="This was right")).to_have_attribute("aria-pressed", "true")
    await expect(page.locator("[data-tool=transfer]").get_by_text("not grounded")).to_be_visible()
