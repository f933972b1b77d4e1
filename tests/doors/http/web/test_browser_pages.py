"""The other pages in a real browser, at every width and in both colours, for everybody."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from journeyman import RiskLevel, ToolLibrary, tool
from journeyman.app.desk import LOCAL, Desk
from journeyman.app.operations.experiments import keep_report
from journeyman.app.splits import Split
from journeyman.choosing import ToolGapReport
from journeyman.experiments import Report
from tests.doors.http.web.conftest import PATIENCE_MS, Site, opened
from tests.doors.http.web.many import fill
from tests.doors.http.web.scenes import clerk
from tests.doors.http.web.test_browser_chat import ask, card, opened_at

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
PAGES: tuple[str, ...] = (
    "chat",
    "approvals",
    "approvals?list=decided",
    "tasks",
    "tasks/new",
    "memory",
    "runs",
    "tools",
    "experiments",
)
PAGES += ("gaps", "audit", "configuration")
PHONE = {"width": 360, "height": 740}


async def filled(page: Page, site: Site) -> str:
    """Something on every page: an answer, a decision made, one that waits. Returns the conversation's id."""
    await opened_at(page, site)
    await ask(page, "Please weigh an apple")
    await expect(page.locator("[data-answer]")).to_have_count(1)
    await ask(page, "Delete order W-17")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator("[data-answer]")).to_have_count(2)
    await ask(page, "Delete order W-17")
    await expect(page.get_by_role("button", name="Approve")).to_be_visible()
    task = {"title": "Review https://github.com/acme/rocket/pull/7", "tags": ["work"], "priority": "high"}
    assert (await site.client.post("/api/v1/tasks", json=task)).status_code == 201
    note = {"text": "The dentist moved to Thursday.", "metadata": {"topic": "health"}}
    assert (await site.client.post("/api/v1/memory/documents", json=note)).status_code == 201
    return page.url.rpartition("/")[2]


async def one_task(site: Site) -> str:
    return f"tasks/{(await site.client.get('/api/v1/tasks')).json()['tasks'][0]['id']}"


async def filled_page(page: Page, site: Site, path: str) -> None:
    await opened_at(page, site, f"#/{path}")
    filled = "main :is(.line, .step, .chip, td, .empty, .decision, .card, .remembered)"
    await expect(page.locator(filled).first).to_be_visible()


async def test_a_run_has_a_timeline_and_its_events(page: Page, site: Site) -> None:
    await filled(page, site)
    await page.get_by_role("link", name="Runs").click()
    await expect(page.get_by_role("heading", name="Runs")).to_be_focused()
    # In the list itself: the conversation of that name is at the side.
    await page.get_by_role("main").get_by_role("link", name="Please weigh an apple").click()
    await expect(page.get_by_role("heading", name="Please weigh an apple")).to_be_visible()
    await expect(page.locator(".timeline li")).to_have_count(9)
    await page.get_by_text("events", exact=False).last.click()
    await expect(page.locator(".fact").first).to_contain_text("run_started")


async def test_tools_show_their_health_and_can_be_called(page: Page, site: Site) -> None:
    await filled(page, site)
    await page.get_by_role("link", name="Tools").click()
    lookup = page.get_by_role("link", name="lookup_order")
    await expect(lookup).to_contain_text("66.7 %")
    await expect(lookup).to_contain_text("p95")
    await expect(lookup.get_by_role("img", name="3 calls, 1 failed")).to_be_visible()
    await lookup.click()
    await page.get_by_label("Arguments as JSON").fill('{"order_id": "W-20"}')
    await page.get_by_role("button", name="Call").click()
    await expect(page.get_by_text('"order_id": "W-20"').last).to_be_visible()


async def test_the_list_of_approvals_decides_too_and_audit_tells_of_it(page: Page, site: Site) -> None:
    await filled(page, site)
    await page.get_by_role("link", name="Approvals").click()
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    await page.get_by_role("link", name="Audit").click()
    await expect(page.get_by_role("rowheader", name="approval approved")).to_have_count(2)
    await expect(page.get_by_text(re.compile(r"\d+ rows, each names the one before"))).to_be_visible()
    assert site.shop.deleted == ["W-17", "W-17"]


async def test_of_many_rows_of_the_audit_those_of_one_person_are_looked_for_from_the_newest(
    page: Page, site: Site
) -> None:
    await fill(site.service.store, 6_000)  # with 600 approvals that others have decided
    await site.client.post("/api/v1/tasks", json={"title": "Buy stamps"})
    asked: list[str] = []
    await opened_at(page, site, "#/audit")
    await expect(page.get_by_text("of 601")).to_be_visible()
    page.on("request", lambda sent: asked.append(sent.url) if "/audit?" in sent.url else None)
    await page.get_by_label("Who", exact=True).fill("local")
    await expect(page.get_by_text("1 row", exact=True)).to_be_visible()
    await expect(page.get_by_role("rowheader", name="task created")).to_be_visible()
    assert len(asked) == 3, "how many there are, how many are theirs, and the latest of those"
    await page.get_by_label("Who", exact=True).fill("margaret")
    await expect(page.get_by_text("of 600")).to_be_visible()
    await expect(page.get_by_role("row")).to_have_count(201)


async def test_experiments_are_plotted_and_a_live_one_is_stopped(page: Page, tmp_path: Path) -> None:
    @tool(name="greet", risk=RiskLevel.REVERSIBLE)
    def greet() -> str:
        """Greet. Use when somebody comes."""
        return "hello"

    arms = {"old": ToolLibrary([greet]), "new": ToolLibrary([greet])}
    split = Split("greeting", arms, shares={"old": 50, "new": 50})
    async with opened(tmp_path, split=split, agents=[clerk(arms["old"])]) as site:
        await keep_report(Desk(site.service.app, LOCAL), _report())
        await opened_at(page, site, "#/experiments")
        live = page.get_by_role("region", name="Live experiment greeting")
        await expect(live.get_by_role("img", name="old 50 percent, new 50 percent")).to_be_visible()
        await live.get_by_role("button", name="Stop").click()
        await expect(live).to_contain_text("Everything new goes to old.")
        assert split.stopped
        await page.get_by_role("link", name="Finished one").click()
        await expect(page.get_by_text("new is better, beyond doubt.")).to_be_visible()
        await expect(page.locator(".intervals .best").first).to_contain_text("0.9 (0.8 to 1)")
        await expect(page.get_by_role("rowheader", name="new against old")).to_be_visible()
        assert await violations(page) == []


async def test_gaps_are_listed_by_demand_with_files_to_begin_with_and_dismissed(page: Page, site: Site) -> None:
    for task in ("Book me a flight to Paris", "Book a flight to Oslo"):
        report = ToolGapReport(missing_tools=("book flight",), attempted_task=task, existing_tools_checked=("lookup",))
        await site.service.store.gaps.add(report, now=1_790_000_000, principal_id=task)
    await opened_at(page, site, "#/gaps")
    await page.get_by_role("link", name="2 times by 2 people book flight").click()
    await expect(page.get_by_role("heading", name="book flight")).to_be_visible()
    await expect(page.get_by_text("Nearest tools: lookup")).to_be_visible()
    await expect(page.get_by_label("book_flight.py", exact=True)).to_contain_text("NOT_IMPLEMENTED")
    assert await violations(page) == []
    await page.get_by_role("button", name="Dismiss").click()
    await expect(page.get_by_text("dismissed", exact=True)).to_be_visible()
    await page.get_by_role("link", name="← All gaps").click()
    await expect(page.get_by_text("Nothing was missing so far")).to_be_visible()


async def test_a_chat_in_which_nothing_could_be_done_says_so_and_notes_it(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, "Turn off the lights in the kitchen")
    await expect(page.get_by_text("No tool can do this yet: turn off lights.")).to_be_visible()
    await page.get_by_role("link", name="It was noted.").click()
    await expect(page.get_by_role("link", name="1 time turn off lights")).to_be_visible()


def _report() -> Report:
    def arm(name: str, score: float) -> dict[str, Any]:
        figures = {"score": {"mean": score, "low": score - 0.1, "high": score + 0.1}}
        return {"arm": name, "units": 40, "observations": 40, "failures": 1, "figures": figures}

    compared = {"a": "old", "b": "new", "difference": 0.4, "low": 0.2, "high": 0.6, "p": 0.001, "p_corrected": 0.001}
    return Report.model_validate(
        {
            "experiment_id": "exp_1",
            "name": "Finished one",
            "paired": True,
            "alpha": 0.05,
            "look": 1,
            "looks": 1,
            "arms": [arm("old", 0.5), arm("new", 0.9)],
            "comparisons": [{**compared, "pairs": 40}],
            "winner": "new",
        }
    )


@pytest.mark.parametrize(
    ("button", "posted", "said"),
    [("It was done…", 0, "by hand"), ("Run it again", 1, "posted"), ("Leave it out", 0, "It says")],
)
async def test_a_call_of_unknown_outcome_is_settled_by_a_person(
    page: Page, tmp_path: Path, button: str, posted: int, said: str
) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.doors.http.web.dying", store, "s1")
    assert await process.wait() == -signal.SIGKILL
    async with opened(tmp_path, store=store) as site:
        await opened_at(page, site, "#/chat/s1")
        question = page.get_by_role("region", name="Outcome unknown: post_letter")
        await question.get_by_role("button", name=button).click()
        if button == "It was done…":
            await question.get_by_label("What it returned").fill('"by hand"')
            await question.get_by_role("button", name="Take it as done").click()
        await expect(page.locator("[data-answer]")).to_contain_text(said)
        await expect(question).to_have_count(0)
        assert site.shop.posted == posted


async def test_nothing_is_wider_than_a_phone_and_the_menu_opens(page: Page, site: Site) -> None:
    session = await filled(page, site)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # a dict is a size
    run = (await site.client.get("/api/v1/runs")).json()["runs"][-1]["id"]
    for path in (f"chat/{session}", *PAGES[1:], f"runs/{run}", "tools/lookup_order", await one_task(site)):
        await filled_page(page, site, path)
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
    await expect(page.get_by_role("link", name="Audit")).not_to_be_visible()
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("link", name="Audit").click()
    await expect(page.get_by_role("heading", name="Audit")).to_be_focused()
    await expect(page.get_by_role("link", name="Approvals")).not_to_be_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
async def test_axe_finds_nothing(browser: Browser, site: Site, colours: Literal["light", "dark"]) -> None:
    page = await browser.new_page(color_scheme=colours)
    page.set_default_timeout(PATIENCE_MS)
    session = await filled(page, site)
    await page.locator(".call summary").first.click()
    assert await violations(page) == []
    await page.get_by_role("button", name="Edit…").click()
    run = (await site.client.get("/api/v1/runs")).json()["runs"][-1]["id"]
    missing = ("chat/nobody", "runs/nobody", "tasks/nobody")
    one = await one_task(site)
    for path in ("chat", f"chat/{session}", *PAGES[1:], f"runs/{run}", "tools/lookup_order", one, *missing):
        await filled_page(page, site, path)
        assert await violations(page) == [], path
    await opened_at(page, site, f"#/{one}")
    await page.get_by_role("button", name="Delete…").click()
    assert await violations(page) == []
    await page.keyboard.press("Escape")
    await opened_at(page, site, f"#/chat/{session}")
    await page.get_by_role("button", name="Rename").click()
    assert await violations(page) == []
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # a dict is a size
    await page.get_by_role("button", name="Menu").click()
    assert await violations(page) == []
    await page.close()


async def violations(page: Page) -> list[str]:
    checked = (await Axe().run(page)).response
    assert any(rule["id"] == "color-contrast" for rule in checked["passes"]), "it has looked at nothing"
    return [f"{item['id']}: {node['html']}" for item in checked["violations"] for node in item["nodes"]]


async def test_who_wants_less_motion_gets_none(browser: Browser, site: Site) -> None:
    page = await browser.new_page(reduced_motion="reduce")
    await opened_at(page, site)
    await ask(page, "Count the stock")
    await expect(card(page, "count_stock").locator(".spinner")).to_have_css("animation-name", "none")
    site.shop.go.set()
    await expect(page.locator("[data-answer]")).to_be_visible()
    await page.close()
