"""Deciding in a real browser: every character and every digit, where the focus goes, who may, and while one is away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from journeyman.core.policy import Principal
from journeyman.doors.http import Tokens
from tests.doors.http.web.conftest import Site, opened
from tests.doors.http.web.scenes import ACCOUNT, NOTE
from tests.doors.http.web.test_browser_chat import ask, card, decision, opened_at, until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
ESCAPED = r'"rent\u202eTNER\u202c\u200b\u0007 \udb40\udc41x\u00a0y\u3164<b>"'


def transfer(page: Page) -> Locator:
    return page.get_by_role("region", name="Approval needed: transfer")


async def test_every_character_and_every_digit_is_shown_and_runs_as_it_is(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Transfer the rent")
    for _ in ("in the conversation", "in the list of approvals"):
        shown = transfer(page).locator(".arguments")
        await expect(shown).to_contain_text(str(ACCOUNT))
        await expect(shown).to_contain_text(ESCAPED)
        await expect(shown).to_contain_text("2.0")
        await page.get_by_role("link", name="Approvals").click()
    await transfer(page).get_by_role("button", name="Edit…").click()
    field = transfer(page).get_by_label("Arguments, as they are to run")
    await expect(field).to_be_focused()
    text = await field.input_value()
    assert str(ACCOUNT) in text
    assert ESCAPED in text
    assert json.loads(text)["note"] == NOTE
    await transfer(page).get_by_role("button", name="Approve with these").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await until_transferred(page, site)
    assert site.shop.transferred == [(ACCOUNT, NOTE, [1.5, 2.0])]


async def until_transferred(page: Page, site: Site) -> None:
    await page.get_by_role("link", name="Runs").click()
    await page.get_by_role("main").get_by_role("link", name="Transfer the rent").click()
    await expect(page.locator("[data-answer]")).to_be_visible()
    await page.locator("[data-tool=transfer] summary").click()
    await expect(page.locator("[data-tool=transfer] .inside")).to_contain_text(str(ACCOUNT))


async def test_what_a_tool_asks_is_a_form_and_its_answer_goes_on_with_the_run(page: Page, site: Site) -> None:
    asks = page.get_by_role("region", name="Question: pack")
    await opened_at(page, site)
    await ask(page, "Pack it")
    await expect(asks).to_contain_text("Which <b>box</b>?")
    await asks.get_by_role("button", name="Answer").click()
    await expect(asks).to_contain_text("box")  # it is missing, and said to be
    await asks.get_by_label("box").select_option(label="large")
    await asks.get_by_label("gift").check()
    await asks.get_by_role("button", name="Answer").click()
    await expect(page.locator("[data-answer]")).to_be_visible()
    assert site.shop.packed == [{"box": "large", "gift": True}]
    await ask(page, "Pack it again")
    await page.get_by_role("link", name="Approvals").click()
    await asks.get_by_role("button", name="Decline").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await page.get_by_role("button", name="Decided").click()
    await expect(page.get_by_role("main")).to_contain_text("Which <b>box</b>?")


async def test_numbers_that_a_person_writes_run_as_written(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Transfer the rent")
    await transfer(page).get_by_role("button", name="Edit…").click()
    written = '{"account": 123456789012345678901234567890, "note": "n", "limits": [0.1, 3]}'
    await transfer(page).get_by_label("Arguments, as they are to run").fill(written)
    await transfer(page).get_by_role("button", name="Approve with these").click()
    await expect(page.locator("[data-answer]")).to_be_visible()
    assert site.shop.transferred == [(123456789012345678901234567890, "n", [0.1, 3.0])]
    await page.get_by_role("link", name="Tools").click()
    await page.get_by_role("link", name="weigh").click()
    # A tool called by hand gets what was written too.
    await page.get_by_label("Arguments as JSON").fill('{"item": 9007199254740993}')
    await page.get_by_role("button", name="Call").click()
    await expect(page.get_by_role("main")).to_contain_text("9007199254740993")


async def test_what_a_call_is_about_is_shown_where_the_service_says_so(page: Page, site: Site) -> None:
    """The list is as a newer service sends it."""
    await opened_at(page, site)
    await ask(page, "Transfer the rent")
    await expect(transfer(page)).to_be_visible()
    listed = (await site.client.get("/api/v1/approvals")).json()
    listed["approvals"][0] |= {"about": "Rent of \u202eMay\u202c", "arguments_json": '{"account":1.0,"note":1e400}'}
    listed["approvals"] += [
        {**listed["approvals"][0], "id": "appr_own", "four_eyes": True, "tool_name": "delete_order", "grant": None}
    ]
    await page.route("**/api/v1/approvals?*", lambda route: route.fulfill(json=listed))
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or "") if "/approve" in request.url else None)
    await page.get_by_role("link", name="Approvals").click()
    await expect(transfer(page).locator(".about")).to_have_text(r"Rent of \u202eMay\u202c")
    await expect(transfer(page).locator(".arguments")).to_contain_text("1.0")
    await expect(transfer(page).locator(".arguments")).to_contain_text("1e400")
    await expect(decision(page)).to_contain_text("Somebody else must approve it")
    await expect(decision(page).get_by_role("button")).to_have_text(["Deny…"])
    await page.route("**/approve", lambda route: route.fulfill(json=listed["approvals"][0]))
    await transfer(page).get_by_role("button", name="Edit…").click()
    await transfer(page).get_by_label("Arguments, as they are to run").fill('{"account": 9007199254740993}')
    await transfer(page).get_by_role("button", name="Approve with these").click()
    await until(page, "document.querySelector('.decision button[disabled]') === null")
    assert [json.loads(body) for body in sent] == [
        {"arguments_json": '{"account": 9007199254740993}', "for_session": False}
    ]


async def test_after_a_decision_the_focus_is_at_the_next_one_or_at_the_call(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Delete order W-17")
    await decision(page).get_by_role("button", name="Deny…").press("Enter")
    await expect(decision(page).get_by_label("Why not?")).to_be_focused()
    await decision(page).get_by_role("button", name="Back").press("Enter")
    await expect(decision(page).get_by_role("button", name="Approve")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("[data-answer]")).to_be_visible()
    await expect(card(page, "delete_order").locator("summary")).to_be_focused()

    # Two that wait, on the page of all of them: the focus goes from one to the other, then to the heading.
    for session in ("s1", "s2"):
        said = {"message": "Delete order W-17", "session_id": session}
        await site.client.post("/api/v1/chat", json=said, headers={"Accept": "application/json"})
    await page.get_by_role("link", name="Approvals").click()
    await expect(decision(page)).to_have_count(2)
    await decision(page).first.get_by_role("button", name="Approve").press("Enter")
    await expect(decision(page)).to_have_count(1)
    await expect(decision(page)).to_be_focused()
    await decision(page).get_by_role("button", name="Approve").press("Enter")
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await expect(page.get_by_role("heading", name="Approvals")).to_be_focused()


TOKENS = Tokens(
    {
        "a-token-for-ada-1": Principal("ada", permissions={"approvals:decide"}),
        "a-token-for-bob-1": Principal("bob"),
    }
)


async def given(page: Page, token: str) -> None:
    await page.get_by_role("dialog").get_by_label("Token").fill(token)
    await page.keyboard.press("Enter")


async def test_who_may_not_decide_sees_what_waits_and_no_button(page: Page, tmp_path: Path) -> None:
    async with opened(tmp_path, tokens=TOKENS) as site:
        await opened_at(page, site)
        await given(page, "a-token-for-bob-1")
        await expect(page.get_by_text("You are bob")).to_be_visible()
        await ask(page, "Delete order W-17")
        await expect(decision(page)).to_contain_text("It waits for somebody who may decide")
        await expect(decision(page).get_by_role("button")).to_have_count(0)
        await expect(page.get_by_role("link", name="Audit")).to_have_count(0)


async def test_a_token_is_asked_for_once_refused_in_words_and_then_everything_loads(page: Page, tmp_path: Path) -> None:
    async with opened(tmp_path, tokens=TOKENS) as site:
        await opened_at(page, site)
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_be_visible()
        await expect(dialog.get_by_role("alert")).to_have_count(0)
        await given(page, "a-token-of-nobody")
        await expect(dialog.get_by_role("alert")).to_contain_text("does not know this token")
        await given(page, "ein Schlüssel")
        await expect(dialog.get_by_role("alert")).to_contain_text("no spaces")
        # None of what the page asked for before it had a token is left behind, although nothing is asked for again.
        await page.clock.install()
        await page.clock.pause_at(4_000_000_000_000)
        await given(page, "a-token-for-ada-1")
        await expect(dialog).to_have_count(0)
        await expect(page.get_by_text("What should be done?")).to_be_visible()
        await expect(page.get_by_text("You are ada")).to_be_visible()
        await expect(page.get_by_text("None yet.")).to_be_visible()


async def test_the_printed_link_signs_in_and_everything_works(page: Page, tmp_path: Path) -> None:
    tokens = Tokens.for_this_machine("token-of-this-machine-0123456789")
    async with opened(tmp_path, tokens=tokens) as site:
        await opened_at(page, site, f"?code={tokens.code_for('token-of-this-machine-0123456789')}")
        await expect(page.get_by_text("You are local")).to_be_visible()
        assert "code" not in page.url
        await ask(page, "Delete order W-17")
        await decision(page).get_by_role("button", name="Approve").click()
        await expect(page.locator("[data-answer]")).to_be_visible()
        await page.reload()
        await expect(page.locator("[data-answer]")).to_be_visible()
        await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_a_hidden_tab_goes_on_counting_and_tells_who_wants_to_know(
    context: BrowserContext, page: Page, site: Site
) -> None:
    # Chromium without a window is never hidden, and shows no notifications: both are stood in for.
    await page.add_init_script(
        """window.told = []; window.away = false; window.askedFor = 0;
        Object.defineProperty(document, "hidden", {get: () => window.away});
        window.Notification = class {
            static permission = "default";
            static async requestPermission() { window.askedFor++; return Notification.permission = "granted"; }
            constructor(title) { window.told.push(title); }
            close() {}
        };"""
    )
    await page.clock.install()
    await opened_at(page, site)
    assert await page.evaluate("window.askedFor") == 0
    await page.get_by_role("button", name="Settings").click()
    await page.get_by_label("Notify me of approvals").click()
    await until(page, "window.askedFor === 1")
    await page.keyboard.press("Escape")
    await page.evaluate("window.away = true; document.dispatchEvent(new Event('visibilitychange'))")
    said = {"message": "Delete order W-17", "session_id": "s1"}
    await site.client.post("/api/v1/chat", json=said, headers={"Accept": "application/json"})
    await page.clock.run_for(30_000)
    await expect(page).to_have_title("(1) Chat – Journeyman")
    await until(page, "window.told.length > 0")
    assert await page.evaluate("window.told") == ["May delete_order run?"]
