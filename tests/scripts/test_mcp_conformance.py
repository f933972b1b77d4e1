"""How the conformance suite is counted; at night, that both sides pass what is not argued away."""

from __future__ import annotations

import pytest

from scripts.mcp_conformance import NOT_APPLICABLE, main, verdict

ALWAYS = "\x1b[90m08:39\x1b[0m [wire-schema-valid         ] \x1b[32mSUCCESS\x1b[0m Every message is valid\n"
SKIPPED = "\x1b[90m08:39\x1b[0m [sep-2640-directory-read   ] \x1b[0mSKIPPED\x1b[0m The server did not declare it\n"
WARNED = "\x1b[90m08:39\x1b[0m [sep-2322-ignore-unexpected] \x1b[33mWARNING\x1b[0m The server ignores extra keys\n"
SHOWN = "\x1b[90m08:39\x1b[0m [tools-list                ] \x1b[32mSUCCESS\x1b[0m The server lists its tools\n"


@pytest.mark.parametrize(
    ("code", "checks", "said"),
    [
        (0, SHOWN + ALWAYS, "pass"),
        (0, SHOWN + SKIPPED + WARNED + ALWAYS, "pass"),
        (0, SKIPPED + ALWAYS, "skip"),
        (0, WARNED + ALWAYS, "skip"),
        (0, "", "skip"),
        (1, SHOWN + ALWAYS, "FAIL"),
        (1, "", "FAIL"),
    ],
)
def test_what_is_only_skipped_or_warned_about_is_not_passed(code: int, checks: str, said: str) -> None:
    assert verdict(code, f"Checks:\n{checks}\nTest Results:\nPassed: 1/1, 0 failed, 0 warnings\n")[0] == said


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_both_sides_pass_every_scenario_that_applies(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    told = capfd.readouterr().out
    passed, of = told.count("\npass ") + told.startswith("pass "), told.rpartition("of ")[2].partition(":")[0]
    assert int(of) == passed, f"what is not shown is to be argued in {NOT_APPLICABLE.keys()}"
