"""What operators do all day, in a real browser, and by the keyboard alone: find, cancel, decide, compare, search."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page, expect

from journeyman.choosing import ToolGapReport
from journeyman.core.policy import Principal
from journeyman.doors.http import Tokens
from tests.doors.http.web.conftest import Site, opened
from tests.doors.http.web.many import fill
from tests.doors.http.web.scenes import HUGE_CHARS
from tests.doors.http.web.test_browser_chat import ask, decision, opened_at, until
from tests.doors.http.web.test_browser_pages import violations
from tests.marking import daily
from tests.waiting import until as until_true

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
TOKENS = Tokens(
    {
        "a-token-for-ada-1": Principal("ada", permissions={"*"}),
        "a-token-for-bob-1": Principal("bob", permissions={"runs:read"}),
        "a-token-for-eve-1": Principal("eve", permissions={"approvals:decide"}),
    }
)


async def given(page: Page, token: str) -> None:
    await page.get_by_role("dialog").get_by_label("Token").fill(token)
    await page.keyboard.press("Enter")


async def asked(site: Site, message: str, session: str, token: str = "") -> str:
    """Say something as a program does; returns the run once it waits for a person or has ended."""
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    said = {"message": message, "session_id": session}
    run: str = (await site.client.post("/api/v1/chat", json=said, headers=headers)).json()["run_id"]
    return run


async def queued(site: Site, message: str, session: str) -> str:
    headers = {"Prefer": "respond-async"}
    said = {"message": message, "session_id": session}
    run: str = (await site.client.post("/api/v1/chat", json=said, headers=headers)).json()["run_id"]
    return run


@pytest.mark.parametrize("many", daily(1_500, nightly=10_000))
async def test_of_very_many_runs_only_what_is_seen_is_fetched_and_drawn(page: Page, site: Site, many: int) -> None:
    await fill(site.service.store, many)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url) if "/api/v1/runs" in request.url else None)
    await opened_at(page, site, "#/runs")
    rows = page.get_by_role("list", name="Runs").get_by_role("link")
    await expect(rows.first).to_contain_text("Refund order W-0 to grace, it arrived broken")
    await expect(page.get_by_text(f"{many:,} runs")).to_be_visible()
    for told in ("support · ada · completed", "$0.000", "2.0 s"):
        await expect(rows.first).to_contain_text(told)
    assert await rows.count() < 60
    assert all("/api/v1/runs?" in url for url in requests), "none for a single row"
    # By the keyboard to the very last, which is fetched only now.
    await rows.first.focus()
    await page.keyboard.press("End")
    await expect(page.locator(f"[data-row='{many - 1}']")).to_be_focused()
    assert await rows.count() < 60
    await page.keyboard.press("ArrowUp")
    await expect(page.locator(f"[data-row='{many - 2}']")).to_be_focused()
    await page.keyboard.press("Home")
    await expect(page.locator("[data-row='0']")).to_be_focused()


async def test_yesterday_s_failed_refund_is_found_by_the_keyboard(page: Page, site: Site) -> None:
    await fill(site.service.store, 900)
    await opened_at(page, site, "#/tasks")
    await page.locator("main").focus()
    await page.keyboard.press("r")
    await expect(page.get_by_role("heading", name="Runs")).to_be_focused()
    search = page.get_by_label("Search runs")
    await search.focus()
    await page.keyboard.type("refund broken")
    rows = page.get_by_role("list", name="Runs").get_by_role("link")
    await expect(page.get_by_text("150 runs found")).to_be_visible()
    await page.keyboard.press("Tab")
    await page.keyboard.type("failed")
    await expect(page.get_by_label("Status")).to_have_value("failed")
    await page.get_by_label("Time").focus()
    await page.keyboard.type("yesterday")
    await expect(page.get_by_label("Time")).to_have_value("yesterday")
    await expect(page).to_have_url(re.compile(r"q=refund\+broken&.*time=yesterday"))
    # What the service says of the same question, in its own words.
    shown = (await site.client.get("/api/v1/runs", params={"q": "refund broken", "status": "failed"})).json()
    assert 0 < shown["total"] < 150
    await expect(rows.first).to_contain_text("failed")
    await expect(rows.first.locator(".badge")).to_have_text("Not done")
    await rows.first.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Refund order")).to_be_visible()
    await page.go_back()
    await expect(search).to_have_value("refund broken")


async def test_all_unfinished_runs_of_a_person_are_cancelled(page: Page, tmp_path: Path) -> None:
    async with opened(tmp_path, tokens=TOKENS) as site:
        site.client.headers["Authorization"] = "Bearer a-token-for-ada-1"
        await asked(site, "Delete order W-17", "s1")
        for number in range(3):
            await queued(site, f"Please weigh apple {number}", "s1")
        await asked(site, "Delete order W-18", "s2", token="a-token-for-bob-1")
        await opened_at(page, site, "#/runs?status=unfinished&principal=ada")
        await given(page, "a-token-for-ada-1")
        await expect(page.get_by_text("4 runs found")).to_be_visible()
        waiting = page.get_by_role("main").get_by_role("link", name="Delete order W-17")
        await expect(waiting).to_contain_text("needs approval until")
        await page.get_by_role("button", name="Cancel 4 unfinished").press("Enter")
        dialog = page.get_by_role("dialog", name="Cancel 4 unfinished runs?")
        await dialog.get_by_role("button", name="Cancel them").press("Enter")
        await expect(page.get_by_text("No run fits")).to_be_visible()
        left = (await site.client.get("/api/v1/runs", params={"status": "awaiting_approval"})).json()["runs"]
        assert [(run["principal"], run["request"]) for run in left] == [("bob", "Delete order W-18")]
        assert site.shop.deleted == []


async def test_runs_behind_an_approval_say_what_they_wait_for_and_are_cancelled(page: Page, site: Site) -> None:
    first = await asked(site, "Delete order W-17", "s1")
    behind = [await queued(site, f"Please weigh apple {number}", "s1") for number in range(2)]
    waits = page.get_by_role("list", name="What it waits for")
    await opened_at(page, site, f"#/runs/{first}")
    await expect(waits).to_contain_text(re.compile(r"until .+, \d+.* left"))
    await opened_at(page, site, f"#/runs/{behind[0]}")
    await expect(waits).to_contain_text("Waits for an earlier run")
    await expect(waits.get_by_role("link", name=first)).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator(".title .badge")).to_have_text("Cancelled")
    await opened_at(page, site, "#/chat/s1")
    cancel = page.locator("article", has_text="Delete order W-17").get_by_role("button", name="Cancel")
    await cancel.click()
    await expect(page.locator("article", has_text="Delete order W-17").locator(".foot .badge")).to_have_text(
        "Cancelled"
    )
    await opened_at(page, site, f"#/runs/{behind[1]}")
    await expect(page.locator("[data-answer]")).to_be_visible()


async def test_a_call_is_approved_with_an_edit_from_the_phone(page: Page, site: Site) -> None:
    await page.set_viewport_size({"width": 375, "height": 740})
    await asked(site, "Delete order W-17", "s1")
    await opened_at(page, site, "#/approvals")
    await expect(decision(page)).to_contain_text("What was read before (0)")
    await decision(page).get_by_role("button", name="Edit…").click()
    await decision(page).get_by_label("order_id", exact=False).fill("W-18")
    field = decision(page).get_by_label("Arguments, as they are to run")
    await expect(field).to_have_value('{\n  "order_id": "W-18",\n  "reason": "asked for"\n}')
    assert await page.evaluate("document.documentElement.scrollWidth") <= 375
    assert await violations(page) == []
    await decision(page).get_by_role("button", name="Approve with these").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await until_true(lambda: site.shop.deleted == ["W-18"])


async def test_what_was_decided_and_why_is_found_again(page: Page, site: Site) -> None:
    await asked(site, "Delete order W-17", "s1")
    await opened_at(page, site, "#/approvals")
    await decision(page).get_by_role("button", name="Deny…").click()
    await decision(page).get_by_label("Why not?").fill("The customer wants it after all")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await page.get_by_role("button", name="Decided").press("Enter")
    line = page.locator(".decided-line")
    await expect(line).to_contain_text("“The customer wants it after all”")
    await expect(line).to_contain_text("by local")
    await line.locator("summary").first.press("Enter")
    await expect(line).to_contain_text("Delete order W-17")
    await page.get_by_label("Search approvals").fill("W-99")
    await expect(page.get_by_text("No decision mentions this")).to_be_visible()
    await page.get_by_label("Search approvals").fill("w-17 delete")
    await expect(line).to_have_count(1)
    assert await violations(page) == []
    await page.get_by_role("button", name="Expired").click()
    await expect(page.get_by_text("No decision mentions this")).to_be_visible()


async def test_an_approver_sees_what_led_to_the_question_although_the_run_is_not_theirs(
    page: Page, tmp_path: Path
) -> None:
    async with opened(tmp_path, tokens=TOKENS) as site:
        await asked(site, "Look, then delete order W-17", "s1", token="a-token-for-ada-1")
        await opened_at(page, site, "#/approvals")
        await given(page, "a-token-for-eve-1")
        waiting = page.locator(".waiting")
        await expect(waiting).to_contain_text("Look, then delete order W-17 – asked by ada of clerk")
        await expect(waiting).to_contain_text("What was read before (1)")
        await expect(waiting.locator(".came-to")).to_contain_text("shipped")
        await expect(waiting.get_by_role("link")).to_have_count(0)


async def test_who_may_only_read_gets_nothing_to_write_with_and_is_not_asked_to_decide(
    page: Page, tmp_path: Path
) -> None:
    async with opened(tmp_path, tokens=TOKENS) as site:
        run = await asked(site, "Delete order W-17", "s1", token="a-token-for-ada-1")
        await opened_at(page, site, "#/chat/s1")
        await given(page, "a-token-for-bob-1")
        await expect(page.get_by_text("You read a conversation of ada")).to_be_visible()
        await expect(page.get_by_label("Message")).to_have_count(0)
        for name in ("Rename", "Delete", "Cancel"):
            await expect(page.get_by_role("main").get_by_role("button", name=name)).to_have_count(0)
        await opened_at(page, site, f"#/runs/{run}")
        await expect(page.get_by_text("Waiting for somebody's decision: delete_order")).to_be_visible()
        await expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


async def test_two_runs_are_compared(page: Page, site: Site) -> None:
    await asked(site, "Please weigh an apple", "s1")
    await asked(site, "Attack", "s2")
    await opened_at(page, site, "#/runs")
    for name in ("Compare: Please weigh an apple", "Compare: Attack"):
        await page.get_by_role("checkbox", name=name).press(" ")
    await page.get_by_role("link", name="Compare the two").press("Enter")
    await expect(page.get_by_role("heading", name="Two runs compared")).to_be_focused()
    await expect(page.get_by_role("row", name="Agent clerk clerk")).not_to_have_class("differs")
    await expect(page.locator("tr.differs", has_text="Call 1")).to_contain_text("weigh")
    assert await violations(page) == []


async def test_of_a_run_that_goes_on_no_duration_is_told(page: Page, site: Site) -> None:
    waiting, done = await asked(site, "Delete order W-17", "s1"), await asked(site, "Please weigh an apple", "s2")
    await opened_at(page, site, f"#/runs/{waiting}..{done}")
    took = page.get_by_role("row", name="Took").get_by_role("cell")
    await expect(took.first).to_have_text("–")
    await expect(took.last).to_have_text(re.compile(r"\d m?s"))


async def test_everything_is_searched_from_one_field(page: Page, site: Site) -> None:
    await asked(site, "Please weigh an apple", "s1")
    assert (await site.client.post("/api/v1/tasks", json={"title": "Buy apples"})).status_code == 201
    report = ToolGapReport(missing_tools=("peel apple",), attempted_task="Peel an apple", existing_tools_checked=())
    await site.service.store.gaps.add(report, now=1_790_000_000, principal_id="local")
    await opened_at(page, site, "#/runs")
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    await page.locator("main").focus()
    await page.keyboard.press("/")
    dialog = page.get_by_role("dialog", name="Search everything")
    await expect(dialog.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("apple")
    for kind in ("Conversations", "Runs", "Tasks", "Gaps"):
        await expect(dialog.get_by_role("group", name=kind)).to_be_visible()
    assert await violations(page) == []
    peel = dialog.get_by_role("option", name="peel apple")
    for _ in range(await dialog.get_by_role("option").count()):
        if await peel.get_attribute("aria-selected") == "true":
            break
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    # From a gap to the file that a new tool begins with.
    await expect(page.get_by_role("heading", name="peel apple")).to_be_visible()
    await expect(page.get_by_label("peel_apple.py", exact=True)).to_contain_text("NOT_IMPLEMENTED")
    await page.keyboard.press("/")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_tabs_share_one_stream_and_the_next_takes_over(context: BrowserContext, page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Count the stock")
    await expect(page.locator("[data-tool=count_stock]")).to_have_attribute("data-status", "running")
    others = [await context.new_page() for _ in range(3)]
    for other in others:
        await other.goto(page.url)
        await expect(other.locator("[data-tool=count_stock]")).to_have_attribute("data-status", "running")

    async def one_stream() -> bool:
        return "journeyman_event_streams 1\n" in (await site.client.get("/metrics")).text

    await until_true(one_stream)
    await page.goto("about:blank")
    await until_true(one_stream)
    site.shop.go.set()
    for other in others:
        await expect(other.locator("[data-answer]")).to_contain_text("41 apples")
        await other.close()


async def test_an_answer_of_megabytes_is_drawn_part_by_part_from_its_beginning(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Write a book")
    answer, parts = page.locator("[data-answer]"), page.locator("[data-answer] .part")
    await expect(answer).to_contain_text("Line 1 of it")
    shown = len(await answer.inner_text())
    assert 0 < shown < HUGE_CHARS / 20
    drawn = await parts.count()
    await page.reload()
    await expect(page.locator(".asked")).to_be_in_viewport()
    # Nobody scrolls, so nothing more is drawn, however often the page looks for something new.
    for _ in range(2):
        async with page.expect_response(lambda told: "/api/v1/runs?" in told.url):
            pass
    assert await parts.count() <= drawn
    await expect(answer.locator("p").first).to_be_in_viewport()
    await page.get_by_role("button", name="Show more").first.focus()
    await page.keyboard.press("Enter")
    await until(page, f"document.querySelector('[data-answer]').innerText.length > {shown}")


async def test_a_turn_of_direction_is_shown_and_does_nothing(page: Page, site: Site) -> None:
    title = "Pay \u202eecila\u202c now"
    assert (await site.client.post("/api/v1/tasks", json={"title": title})).status_code == 201
    await asked(site, title, "s1")
    for path in ("tasks", "runs", "chat/s1"):
        await opened_at(page, site, f"#/{path}")
        await expect(page.get_by_role("main").get_by_text(r"Pay \u202eecila\u202c now").first).to_be_visible()
        assert "\u202e" not in await page.locator("body").inner_text()


async def test_text_from_the_right_begins_at_the_right_and_turns_nothing_around_it(page: Page, site: Site) -> None:
    title = "اتصل بـ Ada بخصوص الطلب 7"
    assert (await site.client.post("/api/v1/tasks", json={"title": title})).status_code == 201
    await asked(site, title, "s1")
    for path in ("tasks", "runs", "chat/s1"):
        await opened_at(page, site, f"#/{path}")
        words = page.get_by_role("main").get_by_text(title).last
        await expect(words).to_have_css("direction", "rtl")
        await expect(page.get_by_role("main")).to_have_css("direction", "ltr")
    await page.get_by_label("Message").fill(title)
    await expect(page.get_by_label("Message")).to_have_css("direction", "rtl")
    await page.get_by_label("Message").fill("Call Ada")
    await expect(page.get_by_label("Message")).to_have_css("direction", "ltr")


async def test_a_problem_goes_when_it_is_over(page: Page, site: Site) -> None:
    await opened_at(page, site, "#/tools/lookup_order")
    await expect(page.get_by_role("button", name="Call")).to_be_visible()
    site.cable.cut()
    await page.get_by_role("button", name="Call").click()
    await expect(page.get_by_role("alert").first).to_contain_text("The service cannot be reached")
    site.cable.mend()
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_a_run_is_stepped_through_replayed_forked_and_made_a_test(page: Page, site: Site) -> None:
    run = await asked(site, "Delete order W-17", "time-machine")
    await opened_at(page, site, f"#/runs/{run}")
    await page.get_by_text("Step through, replay, fork").click()
    step = page.get_by_role("region", name="Step 1")
    await step.get_by_text("What the model saw").click()
    await expect(step.locator(".seen")).to_contain_text("Delete order W-17")
    await expect(step.get_by_role("list", name="What was decided")).to_contain_text("asked")
    await expect(step.get_by_role("list", name="What was decided")).to_contain_text("irreversible")
    await page.get_by_label("Replay with rules").fill(
        '{"default_risk": "reversible", "risks": {"delete_order": "reversible"}}'
    )
    await page.get_by_role("button", name="Replay").click()
    await expect(page.get_by_text("1 of 1 calls would be decided otherwise: 1 now free.")).to_be_visible()
    await page.get_by_role("button", name="Make a test").click()
    await expect(page.get_by_label("The test")).to_contain_text("def test_delete_order_w_17(recorded_run)")
    assert await violations(page) == []
    await page.get_by_label("Say something first").fill("Leave it there")
    await page.get_by_role("button", name="Fork here").click()
    await expect(page).not_to_have_url(re.compile(run))
    await expect(page.get_by_role("heading", name="Delete order W-17")).to_be_visible()
    assert site.shop.deleted == []
