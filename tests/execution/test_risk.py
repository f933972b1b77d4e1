"""How a call is graded: by operator, declaration, known name and default; arguments only ever raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import Policy, RiskLevel, ToolSpecification
from journeyman.execution import categorize_action_risk, requires_approval
from journeyman.execution.checks import KNOWN_RISKS, grade

REVERSIBLE, DELAYED, IRREVERSIBLE = RiskLevel


def graded(name: str = "do_it", arguments: Any = None, policy: Policy | None = None, **fields: Any) -> RiskLevel:
    return grade(ToolSpecification(name=name, description="d", **fields), arguments or {}, policy or Policy())


def test_the_known_names() -> None:
    for name in ("web_search", "read_file", "get_current_time", "search_memory"):
        assert categorize_action_risk(name, {}) is graded(name) is REVERSIBLE
    for name in ("send_email", "create_calendar_event", "schedule_task"):
        assert categorize_action_risk(name, {}) is graded(name) is DELAYED
    for name in ("delete_file", "make_purchase", "send_money", "modify_production"):
        assert categorize_action_risk(name, {}) is graded(name) is IRREVERSIBLE


def test_who_has_the_last_word() -> None:
    assert graded() is IRREVERSIBLE
    assert graded(policy=Policy(default_risk=DELAYED)) is DELAYED
    assert graded(read_only=True) is REVERSIBLE
    assert graded("send_money", risk=REVERSIBLE) is REVERSIBLE
    assert graded("web_search", risk=IRREVERSIBLE) is IRREVERSIBLE
    assert graded("send_money", read_only=True) is REVERSIBLE
    assert graded("web_search", policy=Policy(default_risk=IRREVERSIBLE)) is REVERSIBLE
    assert graded(risk=REVERSIBLE, policy=Policy(risks={"do_it": IRREVERSIBLE})) is IRREVERSIBLE
    assert graded(risk=IRREVERSIBLE, policy=Policy(risks={"do_it": REVERSIBLE})) is REVERSIBLE
    assert categorize_action_risk("something_else", {}) is IRREVERSIBLE


SENSITIVE = [
    "/etc/shadow",
    "/etc//shadow",
    "/etc/./shadow",
    "/etc/x/../shadow",
    "/etc/my files/../shadow",
    "cat '/etc/x/../shadow' y/..",
    "etc/shadow",
    "../../etc/shadow",
    "\\etc\\shadow",
    "file:///etc//shadow",
    "%2Fetc%2Fshadow",
    "/etc/sh%61dow",
    "/etc/%252e%252fshadow",
    "home/ada/%2Eenv",
    "https%3A%2F%2Fexample.org%2F%3Ftoken%3Dabc",
    "/proc/self/environ",
    "/proc/1/environ",
    "/proc//self/./task/7/environ",
    "cat /etc/sudoers",
    ".env",
    "config/.env.production",
    "~/.ssh/id_rsa",
    "/home/ada/.ssh/id_ed25519",
    "C:\\Users\\ada\\.aws\\credentials",
    "server.pem",
    "tls/private.key",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----",
    "https://ada:hunter2@example.org/x",
    "https://example.org/?token=abc",
    "see https://example.org/a?x=1&api_key=abc now",
    "https://example.org/cb#access_token=abc",
    "postgresql://ada:pw@db/x",
]
HARMLESS = [
    "notes.txt",
    "/etc/hosts",
    "/etc/../shadow",
    "docs/etc//shadowing.md",
    "fetc/shadow",
    "/proc/cpuinfo",
    "/proc/self/environment.txt",
    "100% of a//b, 50%25 of ./c",
    "environment.md",
    "my.environment",
    "keyboard.txt",
    "https://example.org/?page=2",
    "https://example.org/?token=",
    "how do tokens work?",
    "https://[broken",
    "the monkey.keys",
]


@pytest.mark.parametrize("text", SENSITIVE)
def test_arguments_raise_the_level(text: str) -> None:
    for arguments in ({"x": text}, {"deep": [{"er": ["ok", text]}]}, {"map": {text: 1}}):
        assert graded(arguments=arguments, read_only=True) is IRREVERSIBLE
        assert categorize_action_risk("read_file", arguments) is IRREVERSIBLE
        assert graded(arguments=arguments, policy=Policy(risks={"do_it": REVERSIBLE})) is IRREVERSIBLE


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_arguments_do_not(text: str) -> None:
    assert graded(arguments={"x": text}, read_only=True) is REVERSIBLE


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(SENSITIVE + HARMLESS),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.sampled_from(sorted(KNOWN_RISKS)), st.dictionaries(st.text(), json))
def test_arguments_never_lower_the_level(name: str, arguments: dict[str, Any]) -> None:
    assert categorize_action_risk(name, arguments).rank >= KNOWN_RISKS[name].rank


@pytest.mark.parametrize("text", ["a/" * 300_000 + "../" * 300_000, "%25" * 300_000, "/." * 300_000])
def test_long_winding_paths_are_graded(text: str) -> None:
    assert categorize_action_risk("read_file", {"x": text}) is REVERSIBLE


def test_arguments_nested_ever_so_deeply_are_graded() -> None:
    nested: Any = "/etc/shadow"
    for _ in range(100_000):
        nested = [nested]
    assert categorize_action_risk("read_file", {"x": nested}) is IRREVERSIBLE


@pytest.mark.parametrize(
    ("risk", "confidence", "asked"),
    [
        (REVERSIBLE, None, False),
        (REVERSIBLE, 0.0, False),
        (DELAYED, None, True),
        (DELAYED, 0.0, True),
        (DELAYED, 0.8499, True),
        (DELAYED, float("nan"), True),
        (DELAYED, 0.85, False),
        (DELAYED, 1.0, False),
        (IRREVERSIBLE, None, True),
        (IRREVERSIBLE, 1.0, True),
        ("irreversible", 1.0, True),
    ],
)
def test_when_a_person_is_asked(risk: RiskLevel | str, confidence: float | None, asked: bool) -> None:
    assert requires_approval(risk, confidence) is asked


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="harmless"):
        requires_approval("harmless", 1.0)
