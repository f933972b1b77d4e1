"""The quickstart's last step: a tool of the reader's own, asked for in words, approved by a click, carried out.

Everything is real: the page's own program behind `journeyman serve`, the embedded model, a browser.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from journeyman.models.embedded.files import supported
from tests.docs.pages import ROOT, Command, blocks
from tests.docs.terminal import Terminal
from tests.doors.http.web.conftest import PATIENCE_MS
from tests.engine import with_an_engine

QUICKSTART = ROOT / "docs" / "quickstart.md"
SAID = re.compile(r"^2\. Write `(.+?)`", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not supported(), reason="the engine is built for Linux x86-64")
@pytest.mark.asyncio(loop_scope="module")
async def test_a_tool_of_ones_own_runs_after_a_click(page: Page, tmp_path: Path) -> None:
    text = QUICKSTART.read_text(encoding="utf-8")
    [tools] = [block for block in blocks(QUICKSTART, "python") if block.title == "shop.py"]
    [said] = SAID.findall(text)
    (folder := tmp_path / "reader").mkdir()
    (folder / "shop.py").write_text(tools.text, encoding="utf-8")
    terminal = Terminal(folder, tmp_path / "programs")
    try:
        with with_an_engine():
            _, printed, _ = await asyncio.to_thread(terminal.type, Command("journeyman serve --library shop.py", ""))
            [link] = re.findall(r"open (\S+)", printed)
            await page.goto(link)
            await page.get_by_label("Message").fill(said)
            await page.keyboard.press("Enter")
            await page.get_by_role("button", name="Approve", exact=True).click()
            answered = page.get_by_text("W-18 is cancelled").filter(visible=True)
            await expect(answered.first).to_be_visible(timeout=PATIENCE_MS)
            await page.goto("about:blank")
    finally:
        await asyncio.to_thread(terminal.close)
