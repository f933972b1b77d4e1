"""Whatever people, models and other services write, in whatever view: it is text, and runs nothing."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.doors.http.web.conftest import Site
from tests.doors.http.web.test_browser_chat import ask, opened_at

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
ATTACK = "<img src=x onerror=\"document.title='broken into'\"><script>document.title='broken into'</script>"
ADDRESSES = ("javascript:document.title='broken into'", "data:text/html,<script>1</script>")


async def posted(site: Site, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await site.client.post(f"/api/v1/{path}", json=body)
    assert answer.status_code in (200, 201, 202), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def is_text(page: Page, *, times: int = 1) -> None:
    """The attack is there to be read, has made no element, and has done nothing. The page's own fixture would also
    complain about anything that its policy had to stop."""
    await expect(page.get_by_text(ATTACK, exact=False).first).to_be_visible()
    assert await page.locator("main img, aside img, main script").count() == 0
    assert "broken" not in await page.title()
    links = await page.eval_on_selector_all("a[href]", "links => links.map(link => link.protocol)")
    assert set(links) <= {"http:", "https:"}


async def test_tasks_and_attachments_are_text(page: Page, site: Site) -> None:
    fields = {"title": f"T {ATTACK}", "description": f"D {ATTACK}", "tags": ["<b>tag</b>"], "priority": "critical"}
    task = (await posted(site, "tasks", fields))["id"]
    for number, address in enumerate(ADDRESSES):
        attachment = {"reference": address, "title": f"A{number} {ATTACK}", "content": f"C {ATTACK}", "type": "url"}
        answer = await site.client.post(f"/api/v1/tasks/{task}/attachments", json=attachment)
        assert answer.status_code in (201, 422), answer.text
    attachment = {"reference": "https://example.org/<img/src=x>", "title": ATTACK, "content": f"C {ATTACK}"}
    await posted(site, f"tasks/{task}/attachments", attachment)
    await opened_at(page, site, "#/tasks")
    await is_text(page)
    await opened_at(page, site, f"#/tasks/{task}")
    await is_text(page)
    for details in await page.locator(".attachment summary").all():
        await details.click()
    await is_text(page)
    await page.get_by_role("button", name="Delete…").click()
    await expect(page.get_by_role("dialog")).to_contain_text(ATTACK)
    await is_text(page)
    await page.keyboard.press("Escape")
    await page.locator(".attachment").last.get_by_role("button", name="Remove").click()
    await is_text(page)


async def test_titles_of_conversations_are_text(page: Page, site: Site) -> None:
    await opened_at(page, site)
    await ask(page, f"Hello {ATTACK}")
    await expect(page.locator("[data-answer]")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(ATTACK)
    await is_text(page)
    await page.get_by_role("button", name="Rename").click()
    await page.get_by_label("Title", exact=True).fill(f"Named {ATTACK}")
    await page.keyboard.press("Enter")
    await expect(page.locator(".conversations li")).to_contain_text(f"Named {ATTACK}")
    await is_text(page)
    await page.get_by_label("Search conversations").fill("<img")
    await expect(page.locator(".conversations li")).to_have_count(1)


async def test_what_a_call_is_about_and_its_arguments_are_text(page: Page, site: Site) -> None:
    await posted(site, "tools/delete_order/call", {"arguments": {"order_id": ATTACK, "reason": ATTACK}})
    listed = (await site.client.get("/api/v1/approvals")).json()
    listed["approvals"][0]["about"] = f"About {ATTACK}"
    await page.route("**/api/v1/approvals?*", lambda route: route.fulfill(json=listed))
    await opened_at(page, site, "#/approvals")
    await expect(page.locator(".about")).to_have_text(f"About {ATTACK}")
    await is_text(page)
    await page.get_by_role("button", name="Edit…").click()
    await is_text(page)


@pytest.mark.parametrize("view", ["chat", "runs", "tasks", "tools", "experiments"])
async def test_addresses_that_somebody_else_made_are_text(page: Page, site: Site, view: str) -> None:
    for path in (
        f"{view}/%3Cimg%20src=x%20onerror=alert(1)%3E",
        f"{view}/%E2%80%AE",
        f"{view}/%",
        f"{view}/{'a' * 3_000}",
    ):
        await opened_at(page, site, f"#/{path}")
        await expect(page.get_by_role("heading", level=1).first).to_be_attached()
        assert await page.locator("main img").count() == 0
