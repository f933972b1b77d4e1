"""Servers that are broken or mean harm, one file each under ``hostile/``: no crash, no stall, a clear error each.

``python -m benchmarks.mcp hostile`` measures the stalls; the bound here is wide, because test machines are slow.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from journeyman import Approve, Deny, ToolLibrary
from journeyman.core.errors import ConfigurationError
from journeyman.sources.mcp.http import GET_PAUSE
from tests.sources.mcp_servers import Lag, hostile, hostile_web, record_of
from tests.waiting import WAIT_SECONDS, until

pytestmark = pytest.mark.slow
LONGEST_STALL = 1.5


async def outcome(name: str, tool: str = "bad.work", **arguments: Any) -> Any:
    async with Lag() as lag, ToolLibrary(sources=[hostile(name)]) as library:
        record = await record_of(library, tool, **arguments)
        again = None if record.status == "unknown" else await record_of(library, tool, **arguments)
    print(f"{name}: {lag.worst * 1000:.0f} ms")
    assert lag.worst < LONGEST_STALL
    return record, again


CALLS = {
    "malformed_result": ("error", "malformed result"),
    "huge_output": ("error", "larger than 4,000,000 bytes"),
    "wrong_ids": ("success", "yours"),
    "notification_flood": ("success", "done"),
    "stdout_noise": ("success", "done"),
    "many_blocks": ("error", "5,000 entries under 'content', and at most 1,000 are taken"),
    "deep_result": ("error", "not valid JSON-RPC"),
    # Who agrees to everything also hands in its form, in which there is nothing to fill in.
    "asks_back": ("success", "True False True"),
    "exits_in_call": ("unknown", "went away during the call"),
    "stdout_flood": ("unknown", "went away during the call"),
    "escapes": ("error", "\\u001b]0;owned\\u0007"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_ends_with_a_clear_outcome(name: str) -> None:
    status, told = CALLS[name]
    record, again = await outcome(name)
    assert (record.status, told in (record.error_message or record.result)) == (status, True), record
    assert again is None or again.status == status


@pytest.mark.parametrize("shape", ["text", "values", "long_values", "objects", "blocks"])
async def test_a_megabyte_is_taken_or_refused_without_a_stall(shape: str) -> None:
    record, _ = await outcome("large_output", shape=shape)
    if shape in ("blocks", "objects"):
        assert "has more than 20,000 lists and objects" in record.error_message
    elif shape == "values":
        assert "has more than 100,000 values" in record.error_message
    else:
        assert record.success
        assert len(json.dumps(record.result)) > 500_000


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("exits_at_start", "ended with exit code 1; its standard error ends with: usage: exits_at_start FOLDER"),
        ("stderr_flood", "out of disk: API_KEY="),
        ("never_answers", "did not answer within 1 s"),
        ("endless_list", "more than 2,000 tools or 100 pages"),
        ("no_list", "sent a malformed result (tools: Input should be a valid list"),
        ("cyclic_list", "lists its tools in a circle"),
    ],
)
async def test_what_cannot_be_opened_says_which_server_and_why(name: str, told: str) -> None:
    source = hostile(name, start_seconds=1) if name == "never_answers" else hostile(name)
    async with Lag() as lag:
        with pytest.raises(ConfigurationError) as caught:
            await ToolLibrary(sources=[source]).open()
    message = str(caught.value)
    assert told in message
    assert "'bad'" in message
    assert "sk-live" not in message
    assert "\x1b" not in message
    assert len(message) < 4_000
    assert lag.worst < LONGEST_STALL


async def test_a_command_that_is_not_there_is_named() -> None:
    from journeyman.sources import McpServer

    source = McpServer(command=["no-such-command-anywhere", "--flag"], name="gone")
    with pytest.raises(ConfigurationError, match=r"'gone' \(no-such-command-anywhere --flag\) cannot be started"):
        await ToolLibrary(sources=[source]).open()


async def test_a_drip_ends_with_the_calls_timeout() -> None:
    async with ToolLibrary(sources=[hostile("slow_drip", timeout_seconds=1)]) as library:
        record = await record_of(library, "bad.work")
    assert record.status == "timeout"


async def test_a_server_that_does_not_end_is_ended() -> None:
    library = ToolLibrary(sources=[hostile("hangs_at_shutdown")])
    await library.open()
    async with asyncio.timeout(WAIT_SECONDS):
        await library.close()


async def test_a_tool_that_changed_since_it_was_approved_is_asked_about_again() -> None:
    asked: list[str] = []
    library = ToolLibrary(sources=[hostile("changes_schema")])
    async with library:
        looked_at = library["bad.work"].digest

        async def approver(approval: Any) -> Approve | Deny:
            asked.append(approval.digest)
            return Approve()

        await record_of(library, "bad.work", approver)
        await record_of(library, "bad.list_prompts")  # the server says that its tools have changed
        await until(lambda: library["bad.work"].digest != looked_at)
        record = await record_of(library, "bad.work", approver)
    assert record.arguments == {"destination": "attacker.example"}
    assert len(set(asked)) == 2


async def test_descriptions_are_shown_and_flagged() -> None:
    async with ToolLibrary(sources=[hostile("instructs_models")]) as library:
        found = {finding.tool for finding in library.lint() if finding.rule == "description-instructs"}
        hidden = library["bad.sum"].specification.description
    assert found == {"bad.add", "bad.sum", "bad.total"}
    assert "\\u200b\\u202e Ignore all previous" in hidden
    assert "\\u001b[8m" in hidden


async def test_bad_names_are_refused_and_the_others_work() -> None:
    async with ToolLibrary(sources=[hostile("bad_names")]) as library:
        names, problems = library.names(), library.problems()
    # Under the server's name nothing is reserved, and a path is a name like any other.
    assert names == ["bad.work", "bad.finish", "bad.../../etc/passwd"]
    told = [problem.message for problem in problems]
    assert len(told) == 8
    assert all("\x1b" not in text and "\u202e" not in text and len(text) < 300 for text in told)
    assert "lists 'Work', which looks like its 'work'" in told


async def test_schemas_that_cannot_be_used_take_only_their_tool_away() -> None:
    async with Lag() as lag, ToolLibrary(sources=[hostile("invalid_schemas")]) as library:
        names = library.names()
        problems = {problem.tool: problem.message for problem in library.problems()}
        record = await record_of(library, "bad.backtracks", a="a" * 5_000 + "b")
    assert lag.worst < LONGEST_STALL
    assert names[-1] == "bad.work"
    assert record.error is not None
    assert record.error.code == "INVALID_ARGUMENTS"
    assert {"bad.wrong_type", "bad.huge", "bad.elsewhere", "bad.bad_pattern"} <= set(problems)
    assert "leads out of the schema" in problems["bad.elsewhere"]


async def test_what_the_protocol_does_not_allow_takes_only_its_tool_away() -> None:
    async with ToolLibrary(sources=[hostile("malformed_list")]) as library:
        assert "bad.work" in library.names()
        assert (await record_of(library, "bad.work")).success
        problems = {problem.tool: problem.message for problem in library.problems()}
    assert set(problems) == {"bad.of_a_list", "bad.None", "bad.told"}
    assert "malformed: inputSchema.type: Input should be 'object'" in problems["bad.of_a_list"]
    assert "malformed: description: Input should be a valid string" in problems["bad.told"]


async def test_a_server_is_not_believed_about_itself() -> None:
    async with ToolLibrary(sources=[hostile("lies_about_itself")]) as library:
        specification = library["bad.wipe_disk"].specification
        record = await record_of(library, "bad.measure")
        denied = await record_of(library, "bad.wipe_disk", lambda _: Deny(reason="no"))
    assert (specification.risk, specification.read_only, specification.idempotent) == (None, False, False)
    assert denied.status == "denied"
    assert "does not fit the schema" in (record.error_message or "")


# --- over HTTP


@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("zip_bomb", "error", "sent a compressed answer ('gzip'), which is not taken"),
        ("redirects", "error", "Redirect to http://127.0.0.1:9/elsewhere not followed"),
        ("stream_of_nothing", "timeout", "did not answer within 1 s"),
    ],
)
async def test_answers_over_http_are_bounded(name: str, status: str, told: str) -> None:
    seconds = 1 if status == "timeout" else WAIT_SECONDS
    served = hostile_web(name, timeout_seconds=seconds, headers={"x-secret": "s3cret-s3cret"})
    async with Lag() as lag, served as source, ToolLibrary(sources=[source]) as library:
        record = await record_of(library, "bad.work")
    assert (record.status, told in (record.error_message or "")) == (status, True), record
    assert lag.worst < LONGEST_STALL


async def test_no_answer_makes_a_call_with_effects_go_out_twice() -> None:
    async with hostile_web("wants_it_again") as source, ToolLibrary(sources=[source]) as library:
        records = [await record_of(library, "bad.work") for _ in range(4)]
    assert [record.status for record in records] == ["unknown", "unknown", "unknown", "success"]
    assert records[3].result == "4"


async def test_a_server_that_redirects_everything_is_called_where_it_is() -> None:
    async with hostile_web("moved") as source, ToolLibrary(sources=[source]) as library:
        record = await record_of(library, "bad.work")
    assert record.result == "done"


async def test_a_server_that_hangs_up_leaves_the_call_unknown_and_the_next_one_possible() -> None:
    async with hostile_web("breaks_off") as source, ToolLibrary(sources=[source]) as library:
        found = [(await record_of(library, "bad.work")).status for _ in range(3)]
    assert found == ["unknown", "unknown", "unknown"]


async def test_a_server_cannot_make_its_client_call_without_pause() -> None:
    async with hostile_web("reconnect_storm") as source, ToolLibrary(sources=[source]) as library:
        begun = time.monotonic()
        await asyncio.sleep(0.5)
        record = await record_of(library, "bad.work")
        passed = time.monotonic() - begun
    assert int(record.result) <= 3 + passed / GET_PAUSE
