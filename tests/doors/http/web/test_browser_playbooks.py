"""The page of playbooks in a real browser: what was learned, on what evidence, how it came about, and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from journeyman.core.approvals import LabelSource
from journeyman.core.playbook import DemonstratedCall, Demonstration, StrategyState, ToolCallingStrategy
from journeyman.core.policy import Principal
from journeyman.doors.http import Tokens
from tests.doors.http.web.conftest import Site, opened
from tests.doors.http.web.test_browser_chat import opened_at
from tests.doors.http.web.test_browser_pages import violations

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

STRATEGY = ToolCallingStrategy(
    id="strategy_note",
    content="For requests like 'Tell them <b>lunch</b>': find_person, then send_note.",
    tool_sequence=("find_person", "send_note"),
    demonstration=Demonstration(
        request="Tell ⟦name⟧ that <b>lunch</b> is ready",
        calls=(
            DemonstratedCall(tool_name="find_person", arguments={"name": "⟦name⟧"}, result="⟦email⟧"),
            DemonstratedCall(tool_name="send_note", arguments={"to": "⟦email⟧"}, effect=True),
        ),
        closing="Told.",
    ),
    state=StrategyState.ACTIVE,
    helpful_count=20,
    harmful_count=2,
    label_sources={LabelSource.RATING: 3, LabelSource.JUDGE: 19},
    models=("master-1",),
    recent=(True,) * 18 + (False,) * 2,
    holdout_helpful=1,
    holdout_harmful=9,
)


async def learned(site: Site) -> None:
    """Three versions: learned; a second strategy, and the first given up; the first worse by one use."""
    playbook = site.service.app.playbooks["office"]
    await playbook.put([STRATEGY], reason="learned from 2 runs")
    await playbook.set_state(STRATEGY.id, StrategyState.QUARANTINED, reason="it was wrong")
    other = ToolCallingStrategy(id="strategy_look", content="Look first.", tool_sequence=("look",))
    await playbook.put([other], reason="imported")


async def test_a_strategy_is_shown_with_its_evidence_and_its_effect(page: Page, site: Site) -> None:
    await learned(site)
    await opened_at(page, site, "#/playbooks")
    await page.get_by_role("link", name="office").click()
    strategy = page.get_by_role("region", name=f"Strategy {STRATEGY.id}")
    said = strategy.get_by_role("list", name="Demonstration").get_by_role("listitem")
    await expect(said).to_have_text(
        [
            "Tell ⟦name⟧ that <b>lunch</b> is ready",
            'find_person(name: "⟦name⟧")→ ⟦email⟧',
            'send_note(to: "⟦email⟧")changes something→ a result that nothing after it used',
            "Told.",
        ]
    )
    await expect(strategy).to_contain_text("3 by rating, 19 by judge; learned from master-1")
    await expect(strategy).to_contain_text("it was wrong")
    assert STRATEGY.effect is not None
    whole, low, high = (f"+{100 * value:.0f}" for value in STRATEGY.effect)
    await expect(strategy).to_contain_text(f"{whole} ({low} to {high})")
    await expect(strategy).to_contain_text("18 of the last 20 runs with it, 1 of 10 holdouts were good")
    look = page.get_by_role("region", name="Strategy strategy_look")
    await expect(look).to_contain_text("not known yet")


async def test_versions_are_compared_and_rolled_back_by_a_click(page: Page, site: Site) -> None:
    await learned(site)
    await opened_at(page, site, "#/playbooks/office")
    versions = page.get_by_role("list", name="Versions").get_by_role("listitem")
    await expect(versions).to_have_count(3)
    await versions.nth(1).get_by_role("button", name="What changed").click()
    changed = page.get_by_role("region", name="From version 1 to version 2").get_by_role("article")
    await expect(changed).to_have_count(1)
    await expect(changed).to_contain_text("find_person → send_note")
    await expect(changed.locator("del").first).to_have_text("active")
    await expect(changed.locator("ins").first).to_have_text("quarantined")

    await page.get_by_label("with version").select_option("3")
    both = page.get_by_role("region", name="From version 1 to version 3").get_by_role("article")
    await expect(both).to_have_count(2)
    await expect(both.first).to_contain_text("Look first.")
    await expect(both.first).to_contain_text("added")
    await page.get_by_label("Compare version").select_option("3")
    await expect(page.get_by_text("Versions 3 and 3 say the same")).to_be_visible()
    assert await violations(page) == []

    await versions.nth(2).get_by_role("button", name="Roll back to this").click()
    await expect(versions).to_have_count(4)
    await expect(versions.first).to_contain_text("rolled back to version 1")
    await expect(page.get_by_role("region", name="Strategy strategy_look")).to_have_count(0)
    await expect(page.get_by_role("button", name="Quarantine")).to_be_visible()  # so it is active again
    [left] = await site.service.app.playbooks["office"].strategies()
    assert left.state is StrategyState.ACTIVE


async def test_who_may_not_change_a_playbook_looks_at_it(page: Page, tmp_path: Path) -> None:
    async with opened(tmp_path, tokens=Tokens({"a-token-for-bob-1": Principal("bob")})) as site:
        await learned(site)
        await opened_at(page, site, "#/playbooks/office")
        await page.get_by_label("Token").fill("a-token-for-bob-1")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("list", name="Versions").get_by_role("listitem")).to_have_count(3)
        for name in ("Roll back to this", "Activate", "Quarantine"):
            await expect(page.get_by_role("button", name=name)).to_have_count(0)
