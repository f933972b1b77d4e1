"""One connection for everything a page watches, in a real browser: it never runs out of them, and it ends."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Request, expect

from tests.doors.http.web.conftest import Site
from tests.doors.http.web.test_browser_chat import ask, card, decision, opened_at
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


class Streams:
    """The streams that a page has open."""

    def __init__(self, page: Page) -> None:
        self.open: set[Request] = set()
        self.most = 0
        self.begun = 0
        page.on("request", self._began)
        page.on("requestfinished", lambda request: self.open.discard(request))
        page.on("requestfailed", lambda request: self.open.discard(request))

    def _began(self, request: Request) -> None:
        if "/events" not in request.url:
            return
        self.open.add(request)
        self.begun += 1
        self.most = max(self.most, len(self.open))


async def test_a_decision_leaves_the_browser_although_many_messages_are_queued_behind_it(
    page: Page, site: Site
) -> None:
    await opened_at(page, site)
    streams = Streams(page)
    await ask(page, "Delete order W-17")
    await expect(decision(page)).to_be_visible()
    for number in range(7):
        await ask(page, f"Please weigh apple {number}")
        await expect(page.locator(".exchange")).to_have_count(number + 2)
    # What waits behind it has no events yet, and is shown all the same.
    await page.reload()
    said = ["Delete order W-17", *(f"Please weigh apple {number}" for number in range(7))]
    await expect(page.locator(".asked")).to_have_text(said)
    await decision(page).get_by_role("button", name="Approve").click()
    await expect(page.locator("[data-answer]")).to_have_count(8)
    assert site.shop.deleted == ["W-17"]
    # One that gives way to the next is open for a moment beside it.
    assert streams.most <= 2
    await until(lambda: not streams.open)
    begun = streams.begun
    await page.reload()
    await expect(page.locator("[data-answer]")).to_have_count(8)
    await until(lambda: not streams.open)
    assert streams.begun == begun + 1, "one for all eight"


async def test_a_stream_ends_with_its_runs_and_does_not_come_back(page: Page, site: Site) -> None:
    await opened_at(page, site)
    streams = Streams(page)
    await ask(page, "Please weigh an apple")
    await expect(page.locator("[data-answer]")).to_be_visible()
    await until(lambda: not streams.open)
    begun = streams.begun
    # The page looks for new runs every two seconds; after two looks it would have come back.
    for _ in range(2):
        async with page.expect_response(lambda answer: "/api/v1/runs?" in answer.url):
            pass
    assert (streams.begun, streams.open) == (begun, set())


async def test_a_reload_in_the_middle_of_an_answer_shows_the_whole_text_so_far(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Tell me a story")
    await expect(page.locator(".answer.writing")).to_have_text("Once upon a")
    await page.reload()
    await expect(page.locator(".answer.writing")).to_have_text("Once upon a")
    site.cable.cut()
    await expect(page.get_by_text("The connection broke off")).to_be_visible()
    site.cable.mend()
    await expect(page.get_by_text("The connection broke off")).to_have_count(0)
    await expect(page.locator(".answer.writing")).to_have_text("Once upon a")
    site.shop.go.set()
    await expect(page.locator("[data-answer]")).to_have_text("Once upon a time.")


async def test_a_second_message_does_not_disturb_the_text_that_is_being_written(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Tell me a story")
    await expect(page.locator(".answer.writing")).to_have_text("Once upon a")
    await ask(page, "Count the stock")
    await expect(page.locator(".exchange")).to_have_count(2)
    await expect(page.locator(".answer.writing")).to_have_text("Once upon a")
    site.shop.go.set()
    await expect(page.locator("[data-answer]")).to_have_count(2)
    await expect(page.locator("[data-answer]").first).to_have_text("Once upon a time.")
    await expect(card(page, "count_stock")).to_have_attribute("data-status", "success")
