"""The page of tasks in a real browser: made, found, changed, completed, deleted, with what is attached to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from journeyman.core.policy import Principal
from journeyman.doors.http import Tokens
from tests.doors.http.web.conftest import Site, opened
from tests.doors.http.web.test_browser_chat import opened_at
from tests.toolkits.test_github_tools import Loopback

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


async def made(site: Site, title: str, **fields: Any) -> str:
    answer = await site.client.post("/api/v1/tasks", json={"title": title, **fields})
    assert answer.status_code == 201, answer.text
    task: str = answer.json()["id"]
    return task


async def test_a_task_is_made_changed_completed_and_deleted(page: Page, site: Site) -> None:
    await opened_at(page, site, "#/tasks")
    await expect(page.get_by_text("No tasks yet")).to_be_visible()
    await page.get_by_role("link", name="New task").click()
    await page.get_by_label("Title").fill("Water the plants")
    await page.get_by_label("Description").fill("All **nine** of them")
    await page.get_by_label("Priority").select_option("high")
    await page.get_by_label("Due").fill("2031-05-06")
    await page.get_by_label("Tags").fill("home, garden")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", name="Water the plants")).to_be_visible()
    task = page.url.rpartition("/")[2]
    kept = (await site.client.get(f"/api/v1/tasks/{task}")).json()
    assert (kept["priority"], kept["tags"], kept["eta"][:10]) == ("high", ["home", "garden"], "2031-05-06")

    await expect(page.get_by_role("region", name="Task")).to_contain_text("All nine of them")
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Title").fill("Water the plants well")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name="Water the plants well")).to_be_visible()
    changed = (await site.client.get(f"/api/v1/tasks/{task}")).json()
    assert (changed["eta"], changed["description"]) == (kept["eta"], "All **nine** of them")
    await page.get_by_role("button", name="Complete").click()
    await expect(page.get_by_role("button", name="Open it again")).to_be_visible()
    assert (await site.client.get(f"/api/v1/tasks/{task}")).json()["status"] == "completed"

    await page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete this task?")
    await dialog.get_by_role("button", name="Keep").click()
    assert (await site.client.get(f"/api/v1/tasks/{task}")).status_code == 200
    await page.get_by_role("button", name="Delete…").click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(page.get_by_text("No tasks yet")).to_be_visible()
    assert (await site.client.get(f"/api/v1/tasks/{task}")).status_code == 404


async def test_tasks_are_filtered_searched_sorted_and_paged(page: Page, site: Site) -> None:
    for number in range(31):
        await made(site, f"Chore {number}", priority="low")
    await made(site, "Pay the rent", priority="critical", tags=["money"], status="in_progress", eta="2031-01-01")
    lines = page.locator(".task-line")
    await opened_at(page, site, "#/tasks")
    await expect(lines).to_have_count(30)
    await page.get_by_role("button", name="Next").click()
    await expect(lines).to_have_count(2)
    for label, value in (("Status", "in_progress"), ("Priority", "critical")):
        await page.get_by_label(label).select_option(value)
        await expect(lines).to_have_count(1)
        await page.get_by_label(label).select_option("")
        await expect(lines).to_have_count(30)
    await page.get_by_label("Tag", exact=True).fill("money")
    await expect(lines).to_have_count(1)
    await page.get_by_label("Tag", exact=True).fill("")
    await page.get_by_label("Search tasks").fill("RENT pay")
    await expect(lines).to_have_count(1)
    await page.get_by_label("Search tasks").fill("")
    await page.get_by_label("Order").select_option("priority_desc")
    await expect(lines.first).to_contain_text("Pay the rent")
    await lines.first.get_by_role("checkbox").click()
    await expect(lines.first).to_contain_text("Completed")


@asynccontextmanager
async def github() -> AsyncIterator[Loopback]:
    server = Loopback()
    runner = web.ServerRunner(web.Server(server.handle), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


async def test_attachments_are_shown_added_refreshed_and_removed(page: Page, tmp_path: Path) -> None:
    async with github() as hub, opened(tmp_path, library=None, github_url=hub.url) as site:
        task = await made(site, "Review https://github.com/acme/rocket/pull/7")
        await opened_at(page, site, f"#/tasks/{task}")
        attached = page.locator(".attachment")
        await expect(attached).to_have_count(1)
        await page.get_by_label("Address to attach").fill("https://example.org/plan")
        await page.get_by_role("button", name="Attach", exact=True).click()
        await expect(attached).to_have_count(2)
        await expect(attached.last.get_by_role("link")).to_have_attribute("href", "https://example.org/plan")
        await expect(attached.last.get_by_role("button", name="Refresh")).to_have_count(0)

        await attached.first.get_by_role("button", name="Refresh").click()
        await expect(attached.first).to_contain_text("Fix the engine")
        await expect(attached.first).to_contain_text("merged")
        await attached.first.get_by_text("Content").click()
        await expect(attached.first).to_contain_text("It was upside down.")
        hub.status = 404
        await attached.first.get_by_role("button", name="Refresh").click()
        await expect(attached.first.get_by_role("alert")).to_be_visible()

        await attached.first.get_by_role("button", name="Remove").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await expect(attached).to_have_count(1)
        kept = (await site.client.get(f"/api/v1/tasks/{task}/attachments")).json()["attachments"]
        assert [item["reference"] for item in kept] == ["https://example.org/plan"]


async def test_who_may_not_change_tasks_looks_at_them(page: Page, tmp_path: Path) -> None:
    tokens = Tokens({"a-token-for-bob-1": Principal("bob"), "a-token-for-ada-1": Principal("ada", permissions={"*"})})
    async with opened(tmp_path, tokens=tokens) as site:
        site.client.headers["Authorization"] = "Bearer a-token-for-ada-1"
        task = await made(site, "Review https://github.com/acme/rocket/pull/7", description="Soon")
        await opened_at(page, site, "#/tasks")
        await page.get_by_label("Token").fill("a-token-for-bob-1")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("checkbox", name="Done: Review")).to_be_disabled()
        await expect(page.get_by_role("link", name="New task")).to_have_count(0)
        await opened_at(page, site, f"#/tasks/{task}")
        await expect(page.get_by_role("main")).to_contain_text("You may look, and change nothing")
        await expect(page.get_by_role("region", name="Task")).to_contain_text("Soon")
        await expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
