"""The page in a real browser: asking, deciding, and seeing the same from everywhere."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from journeyman.core.policy import Policy, Principal
from journeyman.doors.http import Tokens
from tests.doors.http.web.conftest import PATIENCE_MS, Site, opened

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
expect.set_options(timeout=PATIENCE_MS)


async def ask(page: Page, text: str) -> None:
    await page.get_by_label("Message").fill(text)
    await page.keyboard.press("Enter")


async def opened_at(page: Page, site: Site, path: str = "") -> None:
    await page.goto(f"{site.url}/{path}")


def card(page: Page, tool: str) -> Locator:
    return page.locator(f"[data-tool={tool}]").last


def decision(page: Page) -> Locator:
    return page.get_by_role("region", name="Approval needed: delete_order")


async def shown(page: Page) -> list[str]:
    """The runs as a person reads them who scrolls through all of them, without the clocks that tick."""
    draw = "for (const one of document.querySelectorAll('.exchange')) one.style.contentVisibility = 'visible'"
    await page.evaluate(draw)  # what is not on the screen is not drawn
    return [text for text in await page.locator(".asked, .run").all_inner_texts() if text]


async def until(page: Page, condition: str) -> None:
    """Playwright's own way evaluates text inside the page, which the page does not allow."""
    async with asyncio.timeout(PATIENCE_MS / 1000):
        while not await page.evaluate(condition):  # noqa: ASYNC110  # nobody in the page could set an event
            await asyncio.sleep(0.02)


async def test_ask_see_the_call_approve_a_delete_and_see_it_done(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Delete order W-17")
    await expect(decision(page)).to_contain_text("irreversible")
    await expect(decision(page).locator(".arguments")).to_contain_text('"W-17"')
    await expect(decision(page).get_by_role("timer")).to_contain_text("left")
    await expect(page.get_by_role("status").first).to_contain_text("Waiting for your decision")
    assert site.shop.deleted == []
    await decision(page).get_by_role("button", name="Approve").click()
    await expect(page.locator("[data-answer] strong")).to_have_text("deleted")
    await expect(card(page, "delete_order")).to_have_attribute("data-status", "success")
    await expect(card(page, "delete_order")).to_contain_text("Approved by local")
    await expect(decision(page)).to_have_count(0)
    assert site.shop.deleted == ["W-17"]


async def test_the_newest_stays_in_view_until_one_scrolls_up_to_read(page: Page, site: Site) -> None:
    far = "document.documentElement.scrollHeight - innerHeight - scrollY"
    await opened_at(page, site)
    for number in (1, 2):
        await ask(page, "Please weigh an apple")
        await expect(page.locator("[data-answer]")).to_have_count(number)
    await until(page, f"{far} < 2 && scrollY > 0")
    await page.mouse.move(600, 300)
    await page.mouse.wheel(0, -400)
    await until(page, f"{far} > 200")
    session = page.url.rpartition("/")[2]
    said = {"message": "Please weigh an apple", "session_id": session}
    await site.client.post("/api/v1/chat", json=said, headers={"Accept": "application/json"})
    await expect(page.locator("[data-answer]")).to_have_count(3)
    assert await page.evaluate(far) > 200


async def test_what_is_denied_does_not_run_and_the_model_reads_why(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Delete order W-17")
    await decision(page).get_by_role("button", name="Deny…").click()
    await expect(decision(page).get_by_role("button", name="Deny", exact=True)).to_be_disabled()
    await decision(page).get_by_label("Why not?").fill("not on a Friday")
    await decision(page).get_by_role("button", name="Deny", exact=True).click()
    await expect(page.locator("[data-answer]")).to_contain_text("nothing was deleted")
    await expect(card(page, "delete_order")).to_contain_text("“not on a Friday”")
    assert site.shop.deleted == []


async def test_what_runs_is_what_a_person_made_of_it(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Delete order W-17")
    await decision(page).get_by_role("button", name="Edit…").click()
    field = decision(page).get_by_label("Arguments, as they are to run")
    await field.fill("{not json")
    await decision(page).get_by_role("button", name="Approve with these").click()
    await expect(decision(page).get_by_role("alert")).to_contain_text("not JSON")
    await field.fill('{"order_id": "W-18", "reason": "edited"}')
    await decision(page).get_by_role("button", name="Approve with these").click()
    await expect(card(page, "delete_order")).to_contain_text("with changed arguments")
    await expect(page.locator("[data-answer]")).to_be_visible()
    assert site.shop.deleted == ["W-18"]


async def test_a_reload_in_the_middle_shows_the_same_run_go_on(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Count the stock")
    await expect(card(page, "count_stock")).to_have_attribute("data-status", "running")
    await expect(card(page, "count_stock").get_by_role("progressbar")).to_be_visible()
    await expect(card(page, "count_stock")).to_contain_text("shelf 3 of 4")
    await page.reload()
    await expect(card(page, "count_stock")).to_have_attribute("data-status", "running")
    site.shop.go.set()
    await expect(page.locator("[data-answer]")).to_contain_text("41 apples")
    await expect(card(page, "count_stock")).to_have_attribute("data-status", "success")


async def test_two_tabs_show_the_same_and_either_decides(context: BrowserContext, page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Delete order W-17")
    await expect(decision(page)).to_be_visible()
    other = await context.new_page()
    await other.goto(page.url)
    await expect(decision(other)).to_be_visible()
    await decision(other).get_by_role("button", name="Approve").click()
    for tab in (page, other):
        await expect(tab.locator("[data-answer]")).to_contain_text("deleted")
    await ask(other, "Please weigh an apple")
    for tab in (page, other):
        await expect(tab.locator("[data-answer]")).to_have_count(2)
    assert await shown(page) == await shown(other)
    assert len(await shown(page)) == 4


async def test_a_run_begun_by_another_program_looks_the_same(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Please weigh an apple")
    await expect(page.locator("[data-answer]")).to_be_visible()
    session = page.url.rpartition("/")[2]
    said = {"message": "Please weigh an apple", "session_id": session}
    await site.client.post("/api/v1/chat", json=said, headers={"Accept": "application/json"})
    await expect(page.locator("[data-answer]")).to_have_count(2)
    live = await shown(page)
    await page.reload()
    await expect(page.locator("[data-answer]")).to_have_count(2)
    assert await shown(page) == live


async def test_the_page_comes_back_by_itself_and_misses_nothing(page: Page, site: Site) -> None:
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/api/v1/events" in sent.url else None)
    await opened_at(page, site)
    await ask(page, "Count the stock")
    await expect(card(page, "count_stock")).to_have_attribute("data-status", "running")
    asked.clear()
    site.cable.cut()
    await expect(page.get_by_text("The connection broke off")).to_be_visible()
    site.shop.go.set()
    site.cable.mend()
    await expect(page.locator("[data-answer]")).to_contain_text("41 apples")
    await expect(page.get_by_text("The connection broke off")).to_have_count(0)
    assert asked
    assert not any(url.endswith("%3A0") for url in asked), "it goes on where it was, and not from the beginning"


async def test_cancel_ends_a_run(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Count the stock")
    await expect(card(page, "count_stock")).to_have_attribute("data-status", "running")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator("[data-status=cancelled]").first).to_be_visible()
    await expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


async def test_cards_mark_what_was_retried_cached_and_failed(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Please weigh an apple")
    await expect(page.locator("[data-answer]")).to_be_visible()
    await expect(card(page, "weigh")).to_contain_text("2 tries")
    await expect(card(page, "lookup_order")).to_contain_text("cached")
    failed = page.locator("[data-tool=lookup_order][data-status=error]")
    await expect(failed).to_contain_text("No order 'W-404'")
    await expect(failed.get_by_text("Ask for the number")).not_to_be_visible()
    await failed.locator("summary").click()
    await expect(failed.get_by_text("Ask for the number")).to_be_visible()


async def test_text_is_shown_while_it_is_written(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Tell me a story")
    await expect(page.locator(".answer.writing strong")).to_have_text("upon")
    await expect(page.get_by_role("status").first).to_have_text("Writing…")
    site.shop.go.set()
    await expect(page.locator("[data-answer]")).to_have_text("Once upon a time.")


async def test_markdown_is_shown_as_what_it_means(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Please weigh an apple")
    answer = page.locator("[data-answer]")
    await expect(answer.locator("td strong")).to_have_text("shipped")
    await expect(answer.locator("ol li")).to_have_count(2)
    await expect(answer.locator("li code")).to_have_text("approval")


async def test_nothing_that_a_model_writes_runs_or_loads(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Show me an attack")
    answer = page.locator("[data-answer]")
    await expect(answer).to_contain_text("<img src=x onerror=")
    await expect(answer.locator("img")).to_have_count(0)
    links = await answer.locator("a").evaluate_all("all => all.map(link => [link.textContent, link.href, link.rel])")
    assert links == [["a good one", "https://example.org/", "noopener noreferrer nofollow"]]
    assert "broken into" not in await page.title()


async def test_everything_works_from_the_keyboard(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await expect(page.get_by_label("Message")).to_be_focused()
    await page.keyboard.type("Delete order W-17")
    await page.keyboard.press("Enter")
    await expect(decision(page)).to_be_visible()
    await page.locator("main").focus()
    await page.keyboard.press("d")
    await expect(decision(page)).to_be_focused()
    for _ in range(3):  # past what was read before, and the grant
        await page.keyboard.press("Tab")
    await expect(decision(page).get_by_role("button", name="Approve")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-answer]")).to_contain_text("deleted")
    await page.locator("main").focus()
    await page.keyboard.press("n")
    await expect(page.get_by_text("What should be done?")).to_be_visible()


async def test_a_message_that_cannot_be_sent_is_not_lost(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await expect(page.get_by_text("What should be done?")).to_be_visible()
    site.cable.cut()
    await ask(page, "Delete order W-17")
    await expect(page.get_by_text("The service cannot be reached").first).to_be_visible()
    await expect(page.get_by_label("Message")).to_have_value("Delete order W-17")
    site.cable.mend()
    await page.get_by_role("button", name="Send").click()
    await expect(decision(page)).to_be_visible()


async def test_a_service_with_tokens_asks_who_one_is(page: Page, tmp_path: Path) -> None:
    tokens = Tokens({"a-token-for-ada-1": Principal("ada", permissions={"approvals:decide"})})
    async with opened(tmp_path, tokens=tokens) as site:
        await opened_at(page, site)
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Token").fill("a-token-of-nobody")
        await page.keyboard.press("Enter")
        await expect(dialog).to_be_visible()
        await dialog.get_by_label("Token").fill("a-token-for-ada-1")
        await page.keyboard.press("Enter")
        await ask(page, "Delete order W-17")
        await expect(decision(page)).to_contain_text("ada")
        await decision(page).get_by_role("button", name="Approve").click()
        await expect(card(page, "delete_order")).to_contain_text("Approved by ada")
        await expect(page.locator("[data-answer]")).to_be_visible()


async def test_which_of_many_tools_were_offered_can_be_looked_up(page: Page, tmp_path: Path) -> None:
    async with opened(tmp_path, policy=Policy(max_offered_tools=3)) as site:
        await opened_at(page, site)
        await ask(page, "Please weigh an apple")
        await expect(page.locator("[data-answer]")).to_be_visible()
        offers = page.locator("details", has_text="Tools that were offered")
        await offers.locator("summary").click()
        await expect(offers).to_contain_text(re.compile("Step 1, they fit the request: .*weigh"))
        await expect(offers).to_contain_text("Step 2, the model called it: lookup_order")
