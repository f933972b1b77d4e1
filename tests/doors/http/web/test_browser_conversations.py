"""Conversations in a real browser: found, renamed, deleted, begun again; and messages that are never cut."""

from __future__ import annotations

import pytest
from playwright.async_api import BrowserContext, Page, expect

from tests.doors.http.web.conftest import Site
from tests.doors.http.web.test_browser_chat import ask, decision, opened_at, until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


async def said(site: Site, text: str, session: str) -> None:
    body = {"message": text, "session_id": session}
    answer = await site.client.post("/api/v1/chat", json=body, headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text


async def test_all_conversations_can_be_reached_and_found(page: Page, site: Site) -> None:
    for number in range(45):
        await said(site, f"Greeting number {number}", f"s{number}")
    listed = page.locator(".conversations li")
    await opened_at(page, site)
    await expect(listed).to_have_count(20)
    await expect(listed.first).to_have_text("Greeting number 44")
    for count in (40, 45):
        await page.get_by_role("button", name="Show older").click()
        await expect(listed).to_have_count(count)
    await expect(page.get_by_role("button", name="Show older")).to_have_count(0)
    await listed.last.get_by_role("link").click()
    await expect(page.locator(".asked")).to_have_text("Greeting number 0")
    await page.get_by_label("Search conversations").fill("NUMBER 17")
    await expect(listed).to_have_text(["Greeting number 17"])
    await page.get_by_label("Search conversations").fill("nobody said this")
    await expect(page.get_by_text("Nothing mentions this.")).to_be_visible()


async def test_a_conversation_is_renamed_and_deleted(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Please weigh an apple")
    await expect(page.locator("[data-answer]")).to_be_visible()
    await page.get_by_role("button", name="Rename").click()
    await expect(page.get_by_label("Title", exact=True)).to_be_focused()
    await page.get_by_label("Title", exact=True).fill("Fruit <b>& co</b>")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Fruit <b>& co</b>")).to_be_visible()
    await expect(page.get_by_role("button", name="Rename")).to_be_focused()
    await expect(page.locator(".conversations li")).to_have_text(["Fruit <b>& co</b>"])

    await ask(page, "Delete order W-17")
    await expect(decision(page)).to_be_visible()
    await page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete this conversation?")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("button", name="Delete", exact=True)).to_be_focused()
    # Another waits behind it: neither keeps the conversation from being deleted.
    await ask(page, "Please weigh a pear")
    await expect(page.locator(".exchange")).to_have_count(3)
    session = page.url.rpartition("/")[2]
    await page.get_by_role("button", name="Delete", exact=True).click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("What should be done?")).to_be_visible()
    await expect(page.get_by_text("None yet.")).to_be_visible()
    assert (await site.client.get(f"/api/v1/chat/history/{session}")).status_code == 404
    assert (await site.client.get("/api/v1/runs")).json()["runs"] == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("chat/nobody", "There is no such conversation"),
        ("runs/nobody", "Run not found"),
        ("tasks/nobody", "There is no such task"),
        ("tools/nobody", "There is no tool 'nobody'"),
        ("experiments/nobody", "Experiment not found"),
        ("nowhere", "There is no such page"),
    ],
)
async def test_what_is_not_there_is_said_to_be_not_there(page: Page, site: Site, path: str, words: str) -> None:
    await opened_at(page, site, f"#/{path}")
    await expect(page.get_by_role("main")).to_contain_text(words)
    await expect(page.get_by_label("Message")).to_have_count(0)


async def test_the_empty_page_names_the_model_and_ways_to_begin(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await expect(page.get_by_text("Answers come from scripted.")).to_be_visible()
    starter = page.get_by_role("list", name="Ways to begin").get_by_role("button").first
    words = await starter.inner_text()
    await starter.click()
    await expect(page.get_by_label("Message")).to_have_value(words)
    await expect(page.get_by_label("Message")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-answer]")).to_have_text("Hello.")


async def test_what_is_too_long_is_said_and_not_cut(page: Page, site: Site) -> None:
    await opened_at(page, site)
    pasted = "😀" * 1_990 + " and more"  # 1,999 characters, of which the first are two units each
    box = page.get_by_label("Message")
    await box.fill(pasted)
    await expect(page.get_by_text("1,999 of 2,000 characters")).to_be_visible()
    await box.fill(f"{pasted} still")
    await expect(page.get_by_role("alert")).to_contain_text("5 characters too long; 2,000 fit")
    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    await page.keyboard.press("Enter")
    await expect(box).to_have_value(f"{pasted} still")
    await box.fill(pasted)
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page.locator(".asked")).to_have_text(pasted)
    await expect(page.locator("[data-answer]")).to_have_text("Hello.")


async def test_an_answer_is_copied_and_asked_for_again_and_says_what_it_cost(
    context: BrowserContext, page: Page, site: Site
) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    await opened_at(page, site)
    await ask(page, "Count the stock")
    site.shop.go.set()
    await expect(page.locator("[data-answer]")).to_be_visible()
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_text("Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "There are **41** apples and 7 pears."
    await page.get_by_role("button", name="Retry").click()
    await expect(page.locator(".asked")).to_have_text(["Count the stock", "Count the stock"])
    await expect(page.locator("[data-answer]")).to_have_count(2)
    await expect(page.get_by_role("button", name="Retry")).to_have_count(1)


async def test_tokens_are_shown_as_read_and_written(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Tell me what it costs")
    await expect(page.locator(".foot")).to_contain_text("1,234 tokens in, 56 out")
    await page.get_by_role("link", name="Timeline of this run").click()
    await expect(page.get_by_role("main")).to_contain_text("1,234 tokens in, 56 out")


async def test_a_run_of_many_messages_shows_the_earlier_ones_on_demand(page: Page, site: Site) -> None:
    for number in range(23):
        await said(site, f"Number {number}", "s1")
    await opened_at(page, site, "#/chat/s1")
    await expect(page.locator("[data-answer]")).to_have_count(10)
    await page.get_by_role("button", name="Show earlier messages").click()
    await expect(page.locator("[data-answer]")).to_have_count(23)
    await until(page, "document.querySelector('.asked').textContent === 'Number 0'")
