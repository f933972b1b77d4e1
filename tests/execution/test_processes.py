"""Tools in processes of their own: killed when they hang, reported when they crash, never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.errors import ConfigurationError, ToolError
from journeyman.core.policy import Principal
from journeyman.execution.processes import KEEP_IDLE, ProcessPool, RemoteCrashError, RemoteError, max_processes
from journeyman.execution.results import MOST_BYTES
from tests.waiting import WAIT_SECONDS, until

HERE = Path(__file__).parent
HANGING = ["sleep_in_c", "busy_loop", "sleep_async", "with_grandchildren"]


@pytest.fixture(autouse=True)
def _targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPool]:
    """Shared, because starting a child is what takes time here; tests that count children have a pool of their own."""
    made = ProcessPool()
    yield made
    asyncio.run(made.close())


@pytest.fixture
async def own_pool() -> AsyncIterator[ProcessPool]:
    made = ProcessPool()
    yield made
    await made.close()


async def run(
    pool: ProcessPool,
    name: str,
    *,
    timeout: float | None = WAIT_SECONDS,
    context: dict[str, Any] | None = None,
    on_progress: Callable[[str, float | None], None] | None = None,
    limit: int = MOST_BYTES,
    **arguments: Any,
) -> Any:
    return await pool.run(
        f"process_targets:{name}",
        json.dumps(arguments),
        timeout=timeout,
        context=context or {},
        on_progress=on_progress,
        limit=limit,
    )


def alive(pid: int) -> bool:
    """A zombie is not alive; whether init collects orphaned grandchildren is not ours to say."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def children() -> set[str]:
    """Those of other pools too: compare with what was there before."""
    # They are listed with the thread that started them.
    return {pid for task in Path("/proc/self/task").glob("*/children") for pid in task.read_text().split()}


def pids(path: Path) -> list[int]:
    found: list[int] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True]}, "text", "Grüße \ud800", None, []])
async def test_a_result_comes_back_as_a_json_value(pool: ProcessPool, value: Any) -> None:
    assert await run(pool, "echo", value=value) == value
    assert await run(pool, "echo_later", value=value) == value


async def test_the_tool_sees_its_context(pool: ProcessPool) -> None:
    facts = {"idempotency_key": "k", "deadline": 12.5, "correlation_id": "c", "run_id": "r", "call_id": "i"}
    principal = Principal("ada", permissions=["orders:read"]).model_dump(mode="json")
    context = {"principal": principal, **facts}
    assert await run(pool, "facts", context=context) == context


@pytest.mark.parametrize("name", ["real_tool", "real_async_tool"])
async def test_a_real_tool_runs_with_its_context(pool: ProcessPool, name: str) -> None:
    seen: list[str] = []
    result = await run(pool, name, count=3, context={"call_id": "c1"}, on_progress=lambda text, _: seen.append(text))
    assert result == {"doubled": 6, "call_id": "c1"}
    assert seen == ["counting"]


async def test_a_secret_that_was_read_is_masked_on_every_way_out(pool: ProcessPool) -> None:
    context = {"secrets": {"TOKEN": 'hunter"2'}}
    progress: list[str] = []
    result = await run(pool, "leak", secret="TOKEN", context=context, on_progress=lambda text, _: progress.append(text))
    assert result == ["the secret is", "•••"]
    assert progress == ["using •••"]
    with pytest.raises(RemoteError, match="refused: •••") as caught:
        await run(pool, "leak_in_error", secret="TOKEN", context=context)
    assert "hunter" not in "".join(caught.value.__notes__)


@pytest.mark.parametrize("name", HANGING)
async def test_a_hanging_tool_is_killed_with_all_it_started(pool: ProcessPool, name: str, tmp_path: Path) -> None:
    path = tmp_path / "pids"
    with pytest.raises(TimeoutError, match=r"not finished after 0\.5 s"):
        await run(pool, name, timeout=0.5, path=str(path))
    first, *others = pids(path)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    await until(lambda: not any(alive(pid) for pid in others))
    assert await run(pool, "echo", value=1) == 1


@pytest.mark.parametrize("name", HANGING)
async def test_cancelling_the_caller_kills_the_tool(pool: ProcessPool, name: str, tmp_path: Path) -> None:
    path = tmp_path / "pids"
    task = asyncio.create_task(run(pool, name, timeout=None, path=str(path)))
    await until(path.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    first, *others = pids(path)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    await until(lambda: not any(alive(pid) for pid in others))


async def test_cancelling_twice_still_leaves_no_zombie(pool: ProcessPool, tmp_path: Path) -> None:
    path = tmp_path / "pids"
    task = asyncio.create_task(run(pool, "busy_loop", timeout=None, path=str(path)))
    await until(path.exists)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not Path(f"/proc/{pids(path)[0]}").exists())


async def test_a_tool_that_exits_is_a_crash_with_its_code(pool: ProcessPool) -> None:
    with pytest.raises(RemoteCrashError, match="'process_targets:leave' exited with code 3") as caught:
        await run(pool, "leave", code=3)
    assert caught.value.code == 3
    assert await run(pool, "echo", value=1) == 1


async def test_a_segfault_is_a_crash_with_its_signal(pool: ProcessPool) -> None:
    with pytest.raises(RemoteCrashError, match="was killed by SIGSEGV") as caught:
        await run(pool, "segfault")
    assert caught.value.code == -signal.SIGSEGV


async def test_a_crash_is_noticed_and_cleaned_up_although_a_grandchild_lives_on(
    pool: ProcessPool, tmp_path: Path
) -> None:
    path = tmp_path / "pids"
    with pytest.raises(RemoteCrashError, match="code 7"):
        await run(pool, "crash_with_grandchild", path=str(path))
    await until(lambda: not any(alive(pid) for pid in pids(path)))


async def test_a_tool_error_comes_back_with_all_its_fields(pool: ProcessPool) -> None:
    with pytest.raises(ToolError, match="NO_SUCH_ORDER: No order 'W-404'") as caught:
        await run(pool, "refuse")
    assert caught.value.retryable
    assert caught.value.recover_action == "Ask for the number"


@pytest.mark.parametrize(
    ("how", "type_name", "message"),
    [("value", "ValueError", "no good"), ("exit", "SystemExit", "3"), ("surrogate", "ValueError", "\ud800")],
)
async def test_any_other_exception_is_named_and_the_child_goes_on(
    pool: ProcessPool, how: str, type_name: str, message: str
) -> None:
    before = await run(pool, "pid")
    with pytest.raises(RemoteError) as caught:
        await run(pool, "fail", how=how)
    assert (caught.value.type_name, caught.value.message) == (type_name, message)
    assert "in fail" in "".join(caught.value.__notes__)
    assert await run(pool, "pid") == before


async def test_a_result_that_json_cannot_say_is_an_exception(pool: ProcessPool) -> None:
    with pytest.raises(RemoteError, match="type 'dict' cannot be written as JSON") as caught:
        await run(pool, "unserialisable")
    assert caught.value.type_name == "UnserialisableResult"


@pytest.mark.parametrize(
    ("target", "type_name"),
    [
        ("no_such_module_anywhere:tool", "ImportPathError"),
        ("process_targets:no_such_name", "ImportPathError"),
        ("process_targets:not_a_tool", "TypeError"),
    ],
)
async def test_a_target_that_is_no_tool_is_named(pool: ProcessPool, target: str, type_name: str) -> None:
    with pytest.raises(RemoteError, match=target.split(":")[0]) as caught:
        await pool.run(target, "{}", timeout=WAIT_SECONDS, context={})
    assert caught.value.type_name == type_name


@pytest.mark.parametrize("target", ["__main__:tool", "module:make.<locals>.tool", "module", ":tool"])
async def test_a_target_that_no_process_can_import_is_refused(pool: ProcessPool, target: str) -> None:
    with pytest.raises(ConfigurationError, match="top level of a module"):
        await pool.run(target, "{}", timeout=WAIT_SECONDS, context={})


async def test_progress_arrives_in_order_while_the_tool_runs(pool: ProcessPool) -> None:
    seen: list[tuple[str, float | None]] = []
    result = await run(pool, "report", steps=3, on_progress=lambda text, fraction: seen.append((text, fraction)))
    assert result == "done"
    assert seen == [("step 0", 0.0), ("step 1", 1 / 3), ("step 2", 2 / 3), ("nearly", None)]


async def test_what_a_tool_prints_goes_to_stderr_and_it_has_no_stdin(
    own_pool: ProcessPool, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await run(own_pool, "chatter") == ""
    out, err = capfd.readouterr()
    assert out == ""
    assert "printed by python" in err
    assert "printed by a shell" in err


async def test_fifty_megabytes_go_there_and_back(pool: ProcessPool) -> None:
    size = 50_000_000
    assert len(await run(pool, "big", size=size)) == size
    sent = "ü" * 5_000_000
    assert await run(pool, "echo", value=sent) == sent


async def test_two_calls_run_at_once_in_two_children(pool: ProcessPool, tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    both = await asyncio.gather(run(pool, "meet", mine=one, other=two), run(pool, "meet", mine=two, other=one))
    assert list(both) == ["met", "met"]


async def test_an_idle_child_is_reused(pool: ProcessPool) -> None:
    first = await run(pool, "pid")
    assert first != os.getpid()
    assert await run(pool, "pid") == first


async def test_what_modules_remember_reaches_no_other_principal(own_pool: ProcessPool) -> None:
    ada, bob = ({"principal": {"id": who}} for who in ("ada", "bob"))
    assert await run(own_pool, "remember", context=ada, said="ada's secret") == ["ada's secret"]
    assert await run(own_pool, "remember", context=bob, said="hello") == ["hello"]
    assert await run(own_pool, "remember", said="nobody's") == ["nobody's"]
    assert await run(own_pool, "remember", context=bob, said="again") == ["hello", "again"]  # and keeps their own


async def test_children_of_those_who_are_gone_make_room(own_pool: ProcessPool) -> None:
    whose = [{"principal": {"id": f"p{number}"}} for number in range(KEEP_IDLE + 2)]
    before = children()
    for context in whose:
        last = await run(own_pool, "pid", context=context)
    assert len(children() - before) == KEEP_IDLE
    assert await run(own_pool, "pid", context=whose[-1]) == last


async def test_only_a_few_idle_children_are_kept(own_pool: ProcessPool, tmp_path: Path) -> None:
    names = [str(tmp_path / str(number)) for number in range(KEEP_IDLE + 1)]
    pairs = zip(names, [*names[1:], names[0]], strict=True)
    before = children()
    await asyncio.gather(*(run(own_pool, "meet", mine=mine, other=other) for mine, other in pairs))
    assert len(children() - before) == KEEP_IDLE


async def test_a_child_that_died_while_idle_is_replaced(pool: ProcessPool) -> None:
    first = await run(pool, "die_soon")
    await until(lambda: not alive(first))
    assert await run(pool, "pid") != first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_a_child_that_dies_as_a_call_reaches_it_is_replaced_if_the_tool_had_not_begun(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await run(pool, "pid")
    monkeypatch.setattr("journeyman.execution.processes._ChildProcess.alive", lambda self: True)
    os.kill(first, signal.SIGKILL)
    assert await run(pool, "pid") != first


def test_a_pool_and_its_idle_child_serve_one_event_loop_after_another() -> None:
    pool = ProcessPool()
    first = asyncio.run(run(pool, "pid"))
    assert asyncio.run(run(pool, "pid")) == first
    asyncio.run(pool.close())
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_closing_kills_tools_at_work_and_refuses_new_ones(tmp_path: Path) -> None:
    pool, path = ProcessPool(), tmp_path / "pids"
    task = asyncio.create_task(run(pool, "busy_loop", timeout=None, path=str(path)))
    await until(path.exists)
    await pool.close()
    with pytest.raises(RemoteCrashError, match="SIGKILL"):
        await task
    assert not alive(pids(path)[0])
    with pytest.raises(RuntimeError, match="closed"):
        await run(pool, "pid")


PARENT = """
import asyncio, os, sys
from journeyman.execution.processes import ProcessPool
async def main():
    pool = ProcessPool()
    await pool.run("process_targets:echo", '{"value": 1}', timeout=None, context={})
    if sys.argv[2] == "exit":
        print(*[child._process.pid for child in pool._children], flush=True)
        return
    print("ready", flush=True)
    await pool.run("process_targets:with_grandchildren", sys.argv[1], timeout=None, context={})
asyncio.run(main())
"""


def parent(tmp_path: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PARENT, json.dumps({"path": str(tmp_path / "pids")}), how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_children_and_grandchildren_die_when_their_parent_is_killed(tmp_path: Path) -> None:
    with parent(tmp_path, "hang") as process:
        await until((tmp_path / "pids").exists)
        process.kill()
    found = pids(tmp_path / "pids")
    assert len(found) == 3
    await until(lambda: not any(alive(pid) for pid in found))


async def test_a_program_that_forgets_its_pool_ends_quietly(tmp_path: Path) -> None:
    with parent(tmp_path, "exit") as process:
        out, err = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert err == ""
    assert out.strip()
    assert not alive(int(out))


async def test_the_event_loop_keeps_turning_while_a_tool_blocks(pool: ProcessPool, tmp_path: Path) -> None:
    await run(pool, "echo", value=1)
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    watcher = asyncio.create_task(watch())
    with pytest.raises(TimeoutError):
        await run(pool, "sleep_in_c", timeout=0.5, path=str(tmp_path / "pids"))
    watcher.cancel()
    assert turns >= 5


# --- how many


async def longest_pause(stop: asyncio.Event) -> float:
    """How long the event loop was held up at worst."""
    worst, last = 0.0, time.monotonic()
    while not stop.is_set():
        await asyncio.sleep(0.005)
        now = time.monotonic()
        worst, last = max(worst, now - last), now
    return worst


@pytest.mark.slow
async def test_a_hundred_and_fifty_calls_at_once_share_a_few_children_and_stall_nobody() -> None:
    pool, before, most = ProcessPool(3), children(), 0
    stop = asyncio.Event()
    pause = asyncio.create_task(longest_pause(stop))
    try:
        calls = [asyncio.ensure_future(run(pool, "pid")) for _ in range(150)]
        while not all(call.done() for call in calls):
            most = max(most, len(children() - before))
            await asyncio.sleep(0.01)
        seen = {call.result() for call in calls}
    finally:
        stop.set()
        await pool.close()
    assert most <= 3 + 1  # one that was idle may be on its way out
    assert len(seen) < 50  # it was one each
    assert await pause < 5.0  # it was many seconds, on a machine with nothing else to do


async def test_a_call_that_is_given_up_while_it_waits_takes_nobodys_place() -> None:
    pool = ProcessPool(1)
    try:
        first = asyncio.ensure_future(run(pool, "nap", seconds=0.5))
        await asyncio.sleep(0)
        waiting = [asyncio.ensure_future(run(pool, "pid")) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert isinstance(await waiting[1], int)
        assert isinstance(await waiting[2], int)
        assert isinstance(await run(pool, "pid"), int)
    finally:
        await pool.close()


async def test_a_child_that_is_killed_gives_its_place_to_the_next() -> None:
    pool = ProcessPool(1)
    try:
        with pytest.raises(TimeoutError):
            await run(pool, "nap", seconds=60.0, timeout=0.2)
        assert isinstance(await run(pool, "pid"), int)
    finally:
        await pool.close()


@pytest.mark.parametrize(("target", "arguments"), [("big", {"size": 2_000_000}), ("endless", {})])
async def test_a_result_beyond_the_limit_is_refused_by_the_child(
    pool: ProcessPool, target: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(RemoteError, match="larger than") as refused:
        await run(pool, target, limit=1_000_000, **arguments)
    assert refused.value.type_name == "ResultTooLarge"


def test_how_many_children_there_may_be_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_MAX_PROCESSES", "7")
    assert max_processes() == 7
    monkeypatch.setenv("JOURNEYMAN_MAX_PROCESSES", "many")
    with pytest.raises(ConfigurationError, match="JOURNEYMAN_MAX_PROCESSES"):
        max_processes()
