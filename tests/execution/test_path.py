"""The order of the stages a call passes, and what each of them leaves in the journal."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from journeyman import Approve, CallStatus, Deny, Principal, RiskLevel, ToolCallRecord, ToolContext, ToolError, tool
from journeyman.core.approvals import Expired
from journeyman.core.events import CallStarted
from journeyman.execution.executor import CallPast
from journeyman.execution.outcome import Suspended
from journeyman.testing import FakeClock, call, say, together
from tests.execution.pathway import Answers, Path
from tests.playing import play
from tests.waiting import WAIT_SECONDS

ADA = Principal("ada", permissions={"orders:*"})


@tool
def change(order: str, amount: int = 1) -> str:
    """Change an order."""
    return f"{order} × {amount}"


@tool(read_only=True)
def look(order: str) -> str:
    """Look at an order."""
    return order


# --- what is written, and when


async def test_started_is_in_the_journal_before_the_body_runs() -> None:
    seen: list[list[tuple[str, bool]]] = []

    @tool
    def effect() -> None:
        """Have an effect."""
        seen.append(list(path.journal.log))

    path = Path([effect])
    record = await path.call(call("effect"))
    assert seen == [[("call_started", True)]]
    assert path.journal.log == [("call_started", True), ("call_finished", False)]
    assert record.status is CallStatus.SUCCESS


async def test_only_tools_with_side_effects_pay_for_the_sync() -> None:
    path = Path([look, change])
    await path.call(call("look", order="W"))
    await path.call(call("change", order="W"))
    assert [sync for kind, sync in path.journal.log if kind == "call_started"] == [False, True]


async def test_a_journal_that_refuses_the_start_keeps_the_tool_from_running() -> None:
    ran: list[str] = []

    @tool
    def effect() -> None:
        """Have an effect."""
        ran.append("effect")

    path = Path([effect])

    def lost(fact: Any) -> None:
        raise RuntimeError("the lease is lost")

    path.journal._on_append = lost
    with pytest.raises(RuntimeError, match="lease"):
        await path.call(call("effect"))
    assert ran == []


async def test_the_record_tells_the_whole_story() -> None:
    path = Path([change])
    record = await path.call(call("change", order="W").with_confidence(0.7), ADA)
    assert record.arguments == {"order": "W", "amount": 1}
    assert (record.result, record.error, record.attempts, record.cached) == ("W × 1", None, 1, False)
    assert (record.risk, record.confidence, record.correlation_id) == (RiskLevel.REVERSIBLE, 0.7, "run")
    assert record.execution_id == "run.c1"
    assert record.end_time >= record.start_time
    assert (await path.facts())[-1].record == record  # type: ignore[union-attr]


async def test_duration_does_not_go_backwards_with_the_wall_clock() -> None:
    class Jumping(FakeClock):
        def time(self) -> float:
            return super().time() - 3600 * self.monotonic()

    clock = Jumping()

    @tool
    async def slow() -> None:
        """Take a while."""
        clock.advance(2)

    record = await Path([slow], clock=clock).call(call("slow"))
    assert record.duration_ms == pytest.approx(2000)


@pytest.mark.parametrize(
    ("scripted", "code"),
    [
        (call("chnage", order="W"), "UNKNOWN_TOOL"),
        (call("locked"), "NOT_PERMITTED"),
        (call("change"), "INVALID_ARGUMENTS"),
        (call("change").raw("{"), "MALFORMED_ARGUMENTS"),
        (call("risky"), "APPROVAL_DENIED"),
    ],
)
async def test_a_call_that_is_refused_never_starts(scripted: Any, code: str) -> None:
    @tool(permissions={"locks:open"})
    def locked() -> None:
        """Open it."""
        raise AssertionError("ran")

    @tool(risk="irreversible")
    def risky() -> None:
        """Risk it."""
        raise AssertionError("ran")

    path = Path([change, locked, risky])
    error = await path.error(scripted)
    assert error.code == code
    assert error.recover_action
    assert "call_started" not in [kind for kind, _ in path.journal.log]
    assert path.journal.log[-1] == ("call_finished", False)


# --- the order of the stages


async def test_permission_comes_before_the_arguments_are_looked_at() -> None:
    @tool(permissions={"orders:write"})
    def write(order: str) -> str:
        """Write an order."""
        return order

    path = Path([write])
    error = await path.error(call("write"))
    assert (error.code, error.category) == ("NOT_PERMITTED", "permission")
    assert "'orders:write'" in error.message
    assert "an anonymous caller" in error.message
    assert (await path.error(call("write"), Principal("bob"))).message.endswith("'bob' does not have")
    assert (await path.error(call("write"), ADA)).code == "INVALID_ARGUMENTS"
    assert (await path.call(call("write", order="W"), ADA)).status is CallStatus.SUCCESS


async def test_arguments_are_checked_before_anybody_is_asked() -> None:
    gate = Answers()

    @tool(risk="irreversible")
    def risky(order: str) -> str:
        """Risk it."""
        return order

    assert (await Path([risky], gate=gate).error(call("risky", order=3))).code == "INVALID_ARGUMENTS"
    assert gate.questions == []


async def test_a_tool_that_is_switched_off_does_not_exist() -> None:
    path = Path([change.with_changes(enabled=False), look])
    error = await path.error(call("change", order="W"))
    assert error.code == "UNKNOWN_TOOL"
    assert "nearest are change" not in error.message


async def test_the_cache_is_behind_the_approval() -> None:
    ran: list[str] = []

    @tool(read_only=True, cache_seconds=60)
    def read(path: str) -> str:
        """Read a file."""
        ran.append(path)
        return "text"

    gate = Answers(Approve(), Deny(reason="not twice"))
    way = Path([read], gate=gate)
    first = await way.call(call("read", path=".env"))
    second = await way.call(call("read", path=".env"))
    assert (first.status, second.status) == ("success", "denied")
    assert (len(ran), len(gate.questions)) == (1, 2)


async def test_nothing_a_tool_does_to_its_arguments_is_seen_elsewhere() -> None:
    @tool
    def greedy(items: list[str], options: dict[str, Any]) -> int:
        """Change what it was given."""
        items.clear()
        options["x"]["y"] = "changed"
        return 0

    path = Path([greedy])
    record = await path.call(call("greedy", items=["a"], options={"x": {"y": 1}}))
    assert record.arguments == {"items": ["a"], "options": {"x": {"y": 1}}}
    started = (await path.facts())[0]
    assert isinstance(started, CallStarted)
    assert started.arguments == record.arguments


async def test_every_attempt_gets_the_arguments_as_they_were_frozen() -> None:
    seen: list[list[str]] = []

    @tool(idempotent=True, retries=2)
    def greedy(items: list[str]) -> str:
        """Change what it was given, then fail."""
        seen.append(list(items))
        items.append("more")
        raise ValueError("again")

    await Path([greedy]).call(call("greedy", items=["a"]))
    assert seen == [["a"]] * 3


# --- approval as the executor sees it


async def test_a_gate_without_an_answer_suspends_the_call() -> None:
    gate = Answers(None)
    path = Path([change], gate=gate, default_risk=RiskLevel.IRREVERSIBLE)
    outcome = await path.outcome(call("change", order="W"), ADA)
    assert outcome == Suspended("c1", gate.questions[0].id)
    assert path.journal.log == [("approval_requested", False)]


async def test_a_call_goes_on_after_its_approval_without_asking_again() -> None:
    asked = Answers(None)
    path = Path([change], gate=asked, default_risk=RiskLevel.IRREVERSIBLE)
    made = call("change", order="W").with_id("c1")
    await path.outcome(made, ADA)
    [approval] = asked.questions
    record = await path.outcome(made, ADA, CallPast(approval=approval, decision=Approve(by="grace")))
    assert isinstance(record, ToolCallRecord)
    assert (record.status, record.approval_id) == ("success", approval.id)
    assert len(asked.questions) == 1


@pytest.mark.parametrize("change_of", ["arguments", "principal", "version"])
async def test_an_approval_is_bound_to_tool_arguments_and_principal(change_of: str) -> None:
    asked = Answers(None, Deny(reason="ask again"))
    path = Path([change], gate=asked, default_risk=RiskLevel.IRREVERSIBLE)
    await path.outcome(call("change", order="W").with_id("c1"), ADA)
    [approval] = asked.questions
    principal = Principal("eve", permissions={"*"}) if change_of == "principal" else ADA
    made = call("change", order="V" if change_of == "arguments" else "W").with_id("c1")
    if change_of == "version":
        path.tools["change"] = change.with_changes(version="2")
    record = await path.outcome(made, principal, CallPast(approval=approval, decision=Approve()))
    assert isinstance(record, ToolCallRecord)
    assert record.status is CallStatus.DENIED
    assert len(asked.questions) == 2
    assert asked.questions[1].digest != approval.digest


async def test_an_expired_question_denies() -> None:
    path = Path([change], gate=Answers(Expired()), default_risk=RiskLevel.IRREVERSIBLE, approval_seconds=7)
    error = await path.error(call("change", order="W"))
    assert (error.code, error.category) == ("APPROVAL_EXPIRED", "permission")
    assert "within 7 s" in error.message


# --- after a crash


async def test_a_started_call_that_is_safe_runs_again_with_the_same_key() -> None:
    keys: list[str] = []

    @tool(idempotent=True)
    def put(order: str, context: ToolContext) -> str:
        """Put an order."""
        keys.append(context.idempotency_key)
        return order

    path = Path([put])
    await path.call(call("put", order="W").with_id("c1"))
    started = (await path.facts())[0]
    assert isinstance(started, CallStarted)
    again = await path.outcome(call("put", order="W").with_id("c1"), None, CallPast(started=started))
    assert isinstance(again, ToolCallRecord)
    assert (again.status, again.attempts) == ("success", 2)
    assert keys == ["run.c1", "run.c1"]


async def test_a_started_call_with_side_effects_is_left_to_a_person() -> None:
    path = Path([change])
    started = CallStarted(call_id="c1", execution_id="run.c1", tool_name="change", attempt=1, arguments={"order": "W"})
    outcome = await path.outcome(call("change", order="W").with_id("c1"), None, CallPast(started=started))
    assert outcome == Suspended("c1", "c1", unknown=True)
    assert "call_started" not in [kind for kind, _ in path.journal.log]


# --- what a tool knows and says


async def test_a_tool_knows_its_context() -> None:
    seen: list[ToolContext] = []

    @tool(timeout_seconds=5)
    def curious(context: ToolContext) -> None:
        """Look around."""
        seen.append(context)

    path = Path([curious])
    await path.call(call("curious"), ADA)
    [context] = seen
    assert (context.principal, context.run_id, context.call_id) == (ADA, "run", "c1")
    assert (context.correlation_id, context.idempotency_key) == ("run", "run.c1")
    assert context.deadline == path.clock.time() + 5


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_progress_is_told_in_order_and_on_the_loops_own_thread(kind: str) -> None:
    threads: list[int] = []

    def work(context: ToolContext) -> str:
        """Work."""
        for part in (0.25, 0.5):
            context.progress(f"at {part}", part)
        return "done"

    async def work_later(context: ToolContext) -> str:
        """Work."""
        return work(context)

    made = tool(work if kind == "sync" else work_later, name="work")
    path = Path([made])
    path.recorder._listeners = (*path.recorder._listeners, lambda event: threads.append(threading.get_ident()))
    await path.call(call("work"))
    assert [event.type for event in path.events] == ["call_started", "call_progress", "call_progress", "call_finished"]
    assert [event.message for event in path.events if event.type == "call_progress"] == ["at 0.25", "at 0.5"]
    assert all(event.seq is None for event in path.events if event.type == "call_progress")
    assert set(threads) == {threading.get_ident()}
    assert [kind for kind, _ in path.journal.log] == ["call_started", "call_finished"]


async def test_a_tool_that_was_given_up_reports_nothing_more() -> None:
    released, over = threading.Event(), threading.Event()

    @tool(timeout_seconds=1)
    def stubborn(context: ToolContext) -> None:
        """Go on after the end."""
        while not released.is_set():
            try:
                released.wait(WAIT_SECONDS)
            except BaseException:
                continue
        context.progress("still here")
        over.set()

    path = Path([stubborn])
    path.deadline = path.clock.monotonic() + 0.05
    assert (await path.call(call("stubborn"))).status is CallStatus.TIMEOUT
    released.set()
    await asyncio.to_thread(over.wait, WAIT_SECONDS)
    await asyncio.sleep(0)
    assert "call_progress" not in [event.type for event in path.events]


# --- secrets


SECRET = 'to"ken\n\\x'


@pytest.fixture
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_SECRET_TOKEN", SECRET)
    monkeypatch.setenv("JOURNEYMAN_SECRET_PART", SECRET[:4])
    monkeypatch.setenv("JOURNEYMAN_SECRET_UNREAD", "shipped")


def leaking(way: str) -> Any:
    async def leak(context: ToolContext) -> Any:
        """Leak a secret."""
        value = context.secrets["TOKEN"] if way != "part" else context.secrets["PART"] + context.secrets["TOKEN"]
        context.progress(f"using {value}")
        match way:
            case "text" | "part":
                return f"shipped with {value}"
            case "nested":
                return {"list": [value, {f"key {value}": 1}], "status": "shipped"}
            case "tool_error":
                raise ToolError("X", f"refused {value}", recover_action=f"drop {value}", user_guidance=f"see {value}")
            case "exception":
                raise ValueError(f"refused {value}")
            case _:
                return {"value": value, "object": object()}

    return tool(leak, risk="reversible")


@pytest.mark.usefixtures("_secret")
@pytest.mark.parametrize("way", ["text", "part", "nested", "tool_error", "exception", "unserialisable"])
async def test_a_secret_that_was_read_is_masked_on_every_way_out(way: str) -> None:
    path = Path([leaking(way)], capture_content=True)
    record = await path.call(call("leak"))
    shown = repr(record) + "".join(repr(event) for event in path.events)
    assert SECRET not in shown
    assert repr(SECRET)[1:-1] not in shown
    assert SECRET[:4] not in shown
    assert "•••" in shown
    if way == "part":
        assert record.result == "shipped with ••••••"
    if way == "nested":
        assert record.result == {"list": ["•••", {"key •••": 1}], "status": "shipped"}


async def test_a_missing_secret_says_which_variable_to_set() -> None:
    path = Path([leaking("text")])
    error = await path.error(call("leak"))
    assert "JOURNEYMAN_SECRET_TOKEN" in error.message


async def test_only_an_unexpected_error_is_held_against_the_tool() -> None:
    @tool(read_only=True)
    def find_order(number: int) -> str:
        """Find an order."""
        if number:
            raise ToolError("ORDER_NOT_FOUND", f"there is no order {number}")
        raise KeyError(number)

    played = await play([find_order], [together(call("find_order", number=7), call("find_order", number=0)), say("-")])
    ordinary, unexpected = [record.error for record in played.response.tool_calls]
    assert ordinary is not None
    assert ordinary.user_guidance is not None
    assert "what the tool says" in ordinary.user_guidance
    assert "repair" not in ordinary.user_guidance
    assert unexpected is not None
    assert "whoever runs 'find_order'" in (unexpected.user_guidance or "")
