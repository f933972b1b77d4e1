"""The page's notice about the configuration file: an edit that was refused, one that waits for a restart, none."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from journeyman.app.configuration import Configuration
from tests.doors.http.web.conftest import opened
from tests.doors.http.web.test_browser_chat import opened_at

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
RIGHT = b"version: 1\ntoolkits: []\n"


async def test_an_edit_that_cannot_be_used_is_told_until_it_is_mended(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "journeyman.yaml"
    file.write_bytes(RIGHT)
    configuration = Configuration(file, watched=False)
    notice = page.get_by_role("status").filter(has_text="The configuration was edited")
    async with opened(tmp_path, configuration=configuration) as site:
        await opened_at(page, site, "#/chat")
        await expect(page.get_by_role("textbox")).to_be_visible()
        await expect(notice).to_have_count(0)
        await configuration.take_over(b"version: 1\ntoolkit: ['<b>hello</b>']\n")
        await page.reload()
        await expect(notice).to_contain_text("cannot be used. What it said before still holds.")
        await expect(notice).to_contain_text("2:1: toolkit: unknown key; did you mean 'toolkits'?")
        await expect(notice.locator("b")).to_have_count(0)
        await configuration.take_over(RIGHT + b"doors: {http: {port: 81}}\n")
        await page.reload()
        await expect(notice).to_contain_text("the service must be restarted for: doors.")
        await configuration.take_over(RIGHT)
        await page.reload()
        await expect(page.get_by_role("textbox")).to_be_visible()
        await expect(notice).to_have_count(0)
