"""The two lock files: what they must not name, and that they agree."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
LOCKS = ["requirements.lock", "requirements-dev.lock"]


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (PROJECT / lock).read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host_and_no_path(lock: str) -> None:
    text = (PROJECT / lock).read_text()
    assert re.findall(r".*(?:://|--index|--find-links|file:).*", text) == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    entries = re.split(r"\n(?=[\w.-]+==)", (PROJECT / lock).read_text())[1:]
    assert len(entries) > 10
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_what_the_demo_runs_on_is_what_the_tests_run_on() -> None:
    runtime, development = pins("requirements.lock"), pins("requirements-dev.lock")
    assert runtime.items() <= development.items()
