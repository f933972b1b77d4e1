"""Markdown as Slack writes it, long answers in parts, people's messages as plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.doors.slack.text import FENCE, code, mrkdwn, parts, plain


@pytest.mark.parametrize(
    ("markdown", "written"),
    [
        ("**bold** and *slanted* and ~~gone~~", "*bold* and _slanted_ and ~gone~"),
        ("__bold__ and _slanted_ and snake_case_name", "*bold* and _slanted_ and snake_case_name"),
        ("# A title", "*A title*"),
        ("## A **bold** title ##", "*A bold title*"),
        ("- one\n* two\n  - three", "• one\n• two\n  • three"),
        ("- [ ] open\n- [x] done", "• ☐ open\n• ☑ done"),
        ("see [the page](https://example.com/a?b=1)", "see <https://example.com/a?b=1|the page>"),
        ("![chart](https://example.com/c.png)", "<https://example.com/c.png|chart>"),
        ("[bad](javascript:alert(1))", "[bad](javascript:alert(1))"),
        ("<https://example.com>", "<https://example.com>"),
        ("a < b & c <@U1> <!channel>", "a &lt; b &amp; c &lt;@U1&gt; &lt;!channel&gt;"),
        ("`**code** <x>` **bold**", "`**code** &lt;x&gt;` *bold*"),
        ("```python\nx = **y**\n```", "```\nx = **y**\n```"),
        ("> quoted **word**", "> quoted *word*"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("| a | bb |\n|---|---|\n| ccc | d |\nafter", "```\na    bb\nccc  d\n```\nafter"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("***both*** of them", "*_both_* of them"),
        ("[page](https://a.example/c_(d)) (see)", "<https://a.example/c_(d)|page> (see)"),
        ("> one\n>> two", "> one\n> two"),
        ("~~~js\na <b>\n~~~\nafter", "```\na &lt;b&gt;\n```\nafter"),
        ("````md\n```\nx\n```\n````\nafter", "```\n`\u200b``\nx\n`\u200b``\n```\nafter"),
        ("| a | b |\n|:--|--:|\n| x \\| y | 2 |\n| 日本 | 3 |", "```\na      b\nx | y  2\n日本   3\n```"),
        ("| only |\n|---|\n| ``` |", "```\nonly\n`\u200b``\n```"),
        ("```x``` stays *in* its line\n\nand so on", "```x``` stays _in_ its line\n\nand so on"),
        ("Hi :wave: 😀 @here @channel", "Hi :wave: 😀 @\u200bhere @\u200bchannel"),
    ],
)
def test_markdown_is_written_as_slack_writes_it(markdown: str, written: str) -> None:
    assert mrkdwn(markdown) == written


def test_code_that_is_never_closed_is_closed() -> None:
    assert mrkdwn("```\nx") == "```\nx\n```"


@given(st.text(alphabet="a!@*_~`#<>&|[](). \n-\x01\x02\x03", max_size=300))
def test_whatever_a_model_writes_calls_nobody(text: str) -> None:
    written = mrkdwn(text + "<!channel> <@U1> \x02!here\x03")
    assert "<!" not in written
    assert "<@" not in written


@given(st.text(alphabet="abc <>&;.`\n", max_size=600), st.integers(min_value=20, max_value=80))
def test_parts_fit_and_lose_no_word(text: str, limit: int) -> None:
    found = parts(text, limit=limit)
    assert all(len(part) <= limit for part in found)
    letters = "".join(text.split()).replace("`", "")
    assert "".join("".join(found).split()).replace("`", "") == letters


def test_parts_are_cut_between_paragraphs_and_code_is_closed_and_opened_again() -> None:
    lines = "\n".join(f"line {number}" for number in range(30))
    found = parts(f"First paragraph.\n\nSecond one.\n\n{FENCE}\n{lines}\n{FENCE}\n\nThe end.", limit=100)
    assert found[0] == "First paragraph.\n\nSecond one."
    assert all(part.count(FENCE) % 2 == 0 for part in found)
    assert found[-1].endswith("The end.")


def test_an_answer_of_12_000_characters_with_tables_and_code_comes_in_whole_parts() -> None:
    table = "| order | state |\n|---|---|\n" + "\n".join(f"| W-{number} | <open> & *new* |" for number in range(120))
    source = "\n".join(f"    print({number}, 'a < b')  # {'x' * 40}" for number in range(80))
    prose = "\n\n".join(f"Paragraph {number} says **something** about <@U1>. " * 4 for number in range(20))
    found = parts(mrkdwn(f"# Report\n\n{table}\n\n```python\n{source}\n```\n\n{prose}"))
    whole = "\n".join(found)
    assert sum(map(len, found)) > 12_000
    assert all(len(part) <= 2_900 for part in found)
    assert all(part.count(FENCE) % 2 == 0 for part in found)
    assert all(whole.count(f"W-{number} ") == 1 for number in range(120))
    assert all(whole.count(f"print({number}, ") == 1 for number in range(80))
    assert "<@" not in whole
    # A line of code is never cut where it need not be.
    assert all(line.rstrip().endswith("x" * 40) for line in whole.splitlines() if "print(" in line)


@given(st.text(alphabet="ab`~|-\\ \n>*", max_size=300))
def test_boxes_are_always_closed_in_every_part(text: str) -> None:
    for part in parts(mrkdwn(text), limit=60):
        lines = [line for line in part.split("\n") if line.startswith(FENCE)]
        assert len([line for line in lines if line == FENCE]) % 2 == 0


def test_links_and_escapes_are_not_cut_in_two() -> None:
    for limit in range(30, 60):
        for part in parts("word " * 5 + "<https://example.com|x> and &amp; more &lt;", limit=limit):
            assert part.count("<") == part.count(">")
            assert not part.endswith(("&", "&a", "&am", "&amp"))


def test_foreign_text_stays_in_its_box() -> None:
    assert code(f"a\n{FENCE}\n<!here>").count(FENCE) == 2


def test_a_persons_message_is_read_as_plain_text() -> None:
    text = "<@U0BOT> ask <@U1|ada> in <#C0GENERAL1|general> about <https://a.example|a> &amp; <mailto:x@y.example>"
    assert plain(text, bot="U0BOT") == "ask @ada in #general (C0GENERAL1) about a (https://a.example) & x@y.example"
