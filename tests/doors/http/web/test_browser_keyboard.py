"""What operators do all day by the keyboard alone: nothing here clicks, fills or focuses anything but with a key."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from journeyman import RiskLevel, ToolLibrary, tool
from journeyman.app.splits import Split
from journeyman.choosing import ToolGapReport
from tests.doors.http.web.conftest import Site, opened
from tests.doors.http.web.many import fill
from tests.doors.http.web.scenes import clerk
from tests.doors.http.web.test_browser_chat import decision, opened_at
from tests.doors.http.web.test_browser_operator import TOKENS, asked, queued
from tests.doors.http.web.test_browser_playbooks import learned
from tests.waiting import until as until_true

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
MOST_TABS = 120
FOCUSED = "(one) => one === document.activeElement && one.matches(':focus-visible')"


class Keys:
    """A person without a mouse."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def to(self, target: Locator, key: str = "Tab") -> None:
        """Goes on until the focus is there, where everybody can see it."""
        await expect(target.first).to_be_attached()
        for _ in range(MOST_TABS):
            if await target.first.evaluate(FOCUSED):
                await expect(target.first).to_be_in_viewport()
                return
            await self.press(key)
        raise AssertionError(f"{target} is not reached by {key}")

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self._page.keyboard.press(key)

    async def write(self, text: str) -> None:
        await self.press("ControlOrMeta+a")
        await self._page.keyboard.type(text)

    async def into(self, label: str, text: str, key: str = "Tab") -> None:
        await self.to(self._page.get_by_label(label, exact=True), key)
        await self.write(text)

    async def push(self, name: str | re.Pattern[str], within: Locator | None = None, key: str = "Tab") -> None:
        await self.to((within or self._page.locator("body")).get_by_role("button", name=name), key)
        await self.press("Enter")

    async def follow(self, name: str | re.Pattern[str], within: Locator | None = None) -> None:
        await self.to((within or self._page.locator("body")).get_by_role("link", name=name))
        await self.press("Enter")

    async def skip_to_content(self) -> None:
        await self._page.keyboard.press("Tab")
        await self.follow("Skip to content")


@pytest.fixture
def keys(page: Page) -> Keys:
    return Keys(page)


async def test_yesterday_s_failed_refund_is_found(page: Page, site: Site, keys: Keys) -> None:
    await fill(site.service.store, 900)
    await opened_at(page, site, "#/tasks")
    await keys.skip_to_content()
    await keys.press("r")
    await expect(page.get_by_role("heading", name="Runs")).to_be_focused()
    await keys.into("Search runs", "refund broken")
    await expect(page.get_by_text("150 runs found")).to_be_visible()
    for label, choice in (("Status", "failed"), ("Time", "yesterday")):
        await keys.to(page.get_by_label(label))
        await page.keyboard.type(choice)
    rows = page.get_by_role("list", name="Runs").get_by_role("link")
    await expect(rows.first).to_contain_text("failed")
    await keys.to(rows.first)
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="Refund order")).to_be_focused()


async def test_a_request_is_made_its_call_approved_and_the_answer_rated(page: Page, site: Site, keys: Keys) -> None:
    await opened_at(page, site)
    await expect(page.get_by_label("Message")).to_be_focused()
    await keys.write("Delete order W-17")
    await keys.press("Enter")
    await expect(decision(page)).to_be_visible()
    await keys.push("Approve", decision(page), key="Shift+Tab")
    await expect(page.locator("[data-answer]")).to_contain_text("deleted")
    await keys.push("This was right", key="Shift+Tab")
    await expect(page.get_by_text("Rated good")).to_be_attached()
    await until_true(lambda: site.shop.deleted == ["W-17"])


async def test_a_call_is_approved_with_an_edit_at_the_width_of_a_phone(page: Page, site: Site, keys: Keys) -> None:
    await page.set_viewport_size({"width": 375, "height": 740})
    await asked(site, "Delete order W-17", "s1")
    await opened_at(page, site, "#/runs")
    await keys.push("Menu")
    await keys.follow("Approvals")
    await keys.push("Edit…", decision(page))
    await keys.to(decision(page).get_by_label("order_id", exact=False))
    await keys.write("W-18")
    await keys.push("Approve with these", decision(page))
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await until_true(lambda: site.shop.deleted == ["W-18"])


async def test_a_call_is_refused_with_a_reason_and_found_again(page: Page, site: Site, keys: Keys) -> None:
    await asked(site, "Delete order W-17", "s1")
    await opened_at(page, site, "#/runs")
    await keys.skip_to_content()
    await keys.press("a")
    await expect(decision(page)).to_be_visible()
    await keys.press("d")
    await expect(decision(page)).to_be_focused()
    await keys.push("Deny…", decision(page))
    await expect(decision(page).get_by_label("Why not?")).to_be_focused()
    await page.keyboard.type("The customer wants it after all")
    await keys.press("Enter")
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await keys.push("Decided", page.get_by_role("main"), key="Shift+Tab")
    line = page.locator(".decided-line")
    await expect(line).to_contain_text("“The customer wants it after all”")
    await keys.to(line.locator("summary").first)
    await keys.press("Enter")
    await expect(line).to_contain_text("Delete order W-17")


async def test_all_unfinished_runs_of_a_person_are_cancelled(page: Page, tmp_path: Path, keys: Keys) -> None:
    async with opened(tmp_path, tokens=TOKENS) as site:
        site.client.headers["Authorization"] = "Bearer a-token-for-ada-1"
        await asked(site, "Delete order W-17", "s1")
        for number in range(2):
            await queued(site, f"Please weigh apple {number}", "s1")
        await asked(site, "Delete order W-18", "s2", token="a-token-for-bob-1")
        await opened_at(page, site, "#/runs")
        await expect(page.get_by_role("dialog").get_by_label("Token")).to_be_focused()
        await page.keyboard.type("a-token-for-ada-1")
        await keys.press("Enter")
        await expect(page.get_by_text("4 runs")).to_be_visible()
        await keys.into("Person", "ada")
        await expect(page.get_by_text("3 runs found")).to_be_visible()
        await keys.push("Cancel 3 unfinished", key="Shift+Tab")
        await keys.push("Cancel them", page.get_by_role("dialog"))
        await expect(page.get_by_role("list", name="Runs").locator(".badge", has_text="Cancelled")).to_have_count(3)
        left = (await site.client.get("/api/v1/runs", params={"status": "awaiting_approval"})).json()["runs"]
        assert [run["principal"] for run in left] == ["bob"]


async def test_a_run_behind_an_approval_is_cancelled(page: Page, site: Site, keys: Keys) -> None:
    await asked(site, "Delete order W-17", "s1")
    await queued(site, "Please weigh an apple", "s1")
    await opened_at(page, site, "#/runs")
    await keys.follow("Please weigh an apple", page.get_by_role("main"))
    await expect(page.get_by_role("list", name="What it waits for")).to_contain_text("is awaiting approval")
    await keys.push("Cancel", page.get_by_role("main"))
    await expect(page.locator(".title .badge")).to_have_text("Cancelled")


async def test_two_runs_are_compared(page: Page, site: Site, keys: Keys) -> None:
    await asked(site, "Please weigh an apple", "s1")
    await asked(site, "Attack", "s2")
    await opened_at(page, site, "#/runs")
    for name in ("Compare: Attack", "Compare: Please weigh an apple"):
        box = page.get_by_role("checkbox", name=name)
        await expect(box).to_be_visible()
        await keys.to(page.locator("[data-row]:focus, [data-row][tabindex='0']"))
        if await page.locator("[data-row]:focus").get_attribute("data-row") != await box.evaluate(ROW):
            await keys.press("ArrowDown")
        await keys.to(box, "Shift+Tab")
        await keys.press("Space")
        await expect(box).to_be_checked()
    await keys.to(page.get_by_role("link", name="Compare the two"), "Shift+Tab")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="Two runs compared")).to_be_focused()


ROW = "(box) => box.closest('.run-line').querySelector('[data-row]').dataset.row"


async def test_a_gap_is_followed_to_a_new_tool_and_dismissed(page: Page, site: Site, keys: Keys) -> None:
    report = ToolGapReport(missing_tools=("peel apple",), attempted_task="Peel an apple", existing_tools_checked=())
    await site.service.store.gaps.add(report, now=1_790_000_000, principal_id="local")
    await opened_at(page, site, "#/runs")
    await keys.skip_to_content()
    await keys.press("/")
    await page.keyboard.type("peel")
    await expect(page.get_by_role("option", name="peel apple")).to_have_attribute("aria-selected", "true")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="peel apple")).to_be_visible()
    await keys.to(page.get_by_label("peel_apple.py", exact=True))
    await expect(page.get_by_label("peel_apple.py", exact=True)).to_contain_text("NOT_IMPLEMENTED")
    await keys.push("Dismiss", key="Shift+Tab")
    await expect(page.get_by_text("dismissed", exact=True)).to_be_visible()


async def test_a_conversation_is_found_renamed_and_deleted(page: Page, site: Site, keys: Keys) -> None:
    await asked(site, "Please weigh an apple", "s1")
    await asked(site, "Attack", "s2")
    await opened_at(page, site, "#/runs")
    await keys.into("Search conversations", "weigh")
    await expect(page.locator(".conversations li")).to_have_count(1)
    await keys.follow("Please weigh an apple", page.locator(".conversations"))
    await keys.push("Rename")
    await expect(page.get_by_label("Title")).to_be_focused()
    await keys.write("Scales")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="Scales")).to_be_visible()
    await expect(page.get_by_role("button", name="Rename")).to_be_focused()
    await keys.push("Delete")
    await keys.push("Delete", page.get_by_role("dialog"))
    await expect(page.get_by_text("What should be done?").first).to_be_visible()


async def test_a_task_is_made_edited_completed_and_deleted(page: Page, site: Site, keys: Keys) -> None:
    await opened_at(page, site, "#/tasks")
    await keys.follow("New task")
    await keys.into("Title", "Buy stamps")
    await keys.push("Create")
    await expect(page.get_by_role("heading", name="Buy stamps")).to_be_visible()
    await keys.push("Edit")
    await keys.into("Title", "Buy ten stamps")
    await keys.push("Save")
    await expect(page.get_by_role("heading", name="Buy ten stamps")).to_be_visible()
    await keys.push("Complete", key="Shift+Tab")
    await expect(page.locator(".title .badge")).to_have_text("Completed")
    await keys.push("Delete…")
    await keys.push("Delete", page.get_by_role("dialog"))
    await expect(page.get_by_text("No tasks yet")).to_be_visible()


async def test_something_is_remembered_found_and_forgotten(page: Page, site: Site, keys: Keys) -> None:
    await opened_at(page, site, "#/memory")
    await keys.into("Remember", "The dentist moved to Thursday.")
    await keys.push("Add")
    await expect(page.locator(".remembered")).to_have_count(1)
    await keys.into("Search memory", "dentist")
    await keys.push(re.compile("^Delete: The dentist"))
    await keys.push("Delete", page.get_by_role("dialog"))
    await expect(page.get_by_text("Nothing like that is remembered")).to_be_visible()


async def test_a_tool_is_called_by_hand(page: Page, site: Site, keys: Keys) -> None:
    await opened_at(page, site, "#/tools")
    await keys.into("Find tools", "look up")
    await keys.follow(re.compile("lookup_order"))
    await keys.to(page.get_by_label("order_id", exact=False).first)
    await keys.write("W-20")
    await keys.push("Call")
    await expect(page.get_by_text('"order_id": "W-20"').last).to_be_visible()


async def test_a_playbook_is_rolled_back(page: Page, site: Site, keys: Keys) -> None:
    await learned(site)
    await opened_at(page, site, "#/playbooks")
    await keys.follow("office")
    versions = page.get_by_role("list", name="Versions").get_by_role("listitem")
    await keys.push("Roll back to this", versions.nth(2))
    await expect(versions).to_have_count(4)
    await expect(versions.first).to_contain_text("rolled back to version 1")


async def test_a_live_experiment_is_stopped(page: Page, tmp_path: Path, keys: Keys) -> None:
    @tool(name="greet", risk=RiskLevel.REVERSIBLE)
    def greet() -> str:
        """Greet. Use when somebody comes."""
        return "hello"

    arms = {"old": ToolLibrary([greet]), "new": ToolLibrary([greet])}
    split = Split("greeting", arms, shares={"old": 50, "new": 50})
    async with opened(tmp_path, split=split, agents=[clerk(arms["old"])]) as site:
        await opened_at(page, site, "#/experiments")
        await keys.push("Stop")
        await expect(page.get_by_text("Everything new goes to old.")).to_be_visible()
        assert split.stopped


async def test_a_call_of_unknown_outcome_is_settled(page: Page, tmp_path: Path, keys: Keys) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.doors.http.web.dying", store, "s1")
    assert await process.wait() == -signal.SIGKILL
    async with opened(tmp_path, store=store) as site:
        await opened_at(page, site, "#/approvals")
        await keys.to(page.get_by_role("main").locator(".waiting a"))
        await keys.press("Enter")
        question = page.get_by_role("region", name="Outcome unknown: post_letter")
        await keys.push("It was done…", question)
        await keys.to(question.get_by_label("What it returned, for the model to read"))
        await keys.write('"by hand"')
        await keys.push("Take it as done", question)
        await expect(page.locator("[data-answer]")).to_contain_text("by hand")


async def test_a_run_is_replayed_and_forked(page: Page, site: Site, keys: Keys) -> None:
    run = await asked(site, "Delete order W-17", "time-machine")
    await opened_at(page, site, f"#/runs/{run}")
    await keys.to(page.locator("summary", has_text="Step through, replay, fork"))
    await keys.press("Enter")
    await keys.push("Make a test")
    await expect(page.get_by_label("The test")).to_contain_text("def test_delete_order_w_17")
    await keys.into("Say something first", "Leave it there", key="Shift+Tab")
    await keys.push("Fork here")
    await expect(page).not_to_have_url(re.compile(run))


async def test_who_decided_is_looked_up_and_colours_are_chosen(page: Page, site: Site, keys: Keys) -> None:
    await fill(site.service.store, 20)
    await opened_at(page, site, "#/audit")
    await keys.push(re.compile("More about row"))
    await expect(page.locator(".raw-row")).to_contain_text("previous")
    await keys.push("Settings", key="Shift+Tab")
    await keys.to(page.get_by_role("dialog").get_by_role("radio", name="As the system"))
    await keys.press("ArrowDown", "ArrowDown")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await keys.press("Escape")
    await expect(page.get_by_role("button", name="Settings")).to_be_focused()
