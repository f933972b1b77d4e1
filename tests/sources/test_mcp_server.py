"""An MCP server as a source of tools: names, risk, calls, progress, cancellation, coming back, and going away."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from journeyman import Agent, ConfigurationError, Journeyman, Policy, Principal, RiskLevel, ToolLibrary, run, stream
from journeyman.core.data import LOG_FIELDS
from journeyman.core.events import CallProgress
from journeyman.sources import McpServer
from journeyman.sources.mcp.tools import graded
from journeyman.testing import ScriptedModel, call, say
from tests.sources.mcp_servers import PATIENT, PLAIN, record_of, yes
from tests.waiting import until

HONEST = Path(__file__).parent / "honest_server.py"


def honest(log: Path, **options: Any) -> McpServer:
    return McpServer(command=[sys.executable, str(HONEST), str(log)], name="box", **PATIENT | options)


def noted(log: Path) -> list[str]:
    return log.read_text().splitlines()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    found = tmp_path / "log"
    found.touch()
    return found


async def test_tools_are_there_under_the_servers_name_while_the_library_is_open(log: Path) -> None:
    library = ToolLibrary(sources=[honest(log)])
    assert not library.names()
    async with library:
        assert "box.picture" in library
        assert library["box.picture"].origin == "box"
        assert library["box.picture"].specification.name_for_models == "box_picture"
        assert (await record_of(library, "box.fail")).error_message == "no such thing"
        grown = library.version
        await record_of(library, "box.grow")
        await until(lambda: library.version != grown)
        assert (await record_of(library, "box.grown")).result == "grown"
    assert not library.names()
    await until(lambda: "ended" in noted(log))


async def test_a_child_gets_a_clean_environment_and_what_it_is_given(log: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    async with ToolLibrary(sources=[honest(log, env={"BOX_TOKEN": "given-to-the-box"})]) as library:
        record = await record_of(library, "box.environment")
    environment = json.loads(record.result)
    assert environment["BOX_TOKEN"] == "given-to-the-box"
    assert "OPENAI_API_KEY" not in environment


async def test_progress_of_the_server_is_progress_of_the_call(log: Path) -> None:
    async with ToolLibrary(sources=[honest(log)]) as library:
        agent = Agent(name="a", instruction="x", tools=[library["box.steps"].specification])
        model = ScriptedModel([call("box.steps"), say("done")])
        events = [event async for event in stream(agent, "go", library=library, model=model, approver=yes)]
    told = [(event.message, event.fraction) for event in events if isinstance(event, CallProgress)]
    assert told == [("step 1", 0.5), ("step 2", 1.0)]


async def test_a_cancelled_call_tells_the_server(log: Path) -> None:
    async with ToolLibrary(sources=[honest(log)]) as library:
        running = asyncio.create_task(record_of(library, "box.wait"))
        await until(lambda: "waiting" in noted(log))
        running.cancel()
        await until(lambda: "cancelled" in noted(log))
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await record_of(library, "box.resource")).success


async def test_a_timeout_tells_the_server(log: Path) -> None:
    async with ToolLibrary(sources=[honest(log, timeout_seconds=1)]) as library:
        assert (await record_of(library, "box.wait")).status == "timeout"
        await until(lambda: "cancelled" in noted(log))


async def test_images_are_kept_apart_from_what_a_model_reads(log: Path) -> None:
    async with ToolLibrary(sources=[honest(log)]) as library:
        agent = Agent(name="a", instruction="x", tools=[library["box.picture"].specification])
        model = ScriptedModel([call("box.picture"), say("done")])
        response = await run(agent, "go", library=library, model=model, approver=yes)
        linked = await record_of(library, "box.resource")
    [record] = response.tool_calls
    [medium] = record.result["media"]
    assert medium["mime_type"] == "image/png"
    assert medium["bytes"] == 68
    assert medium["data"].startswith("iVBOR")
    read = next(message.content for message in response.messages if message.role == "function")
    assert json.loads(read) == {"text": "a dot", "media": [{"mime_type": "image/png", "bytes": 68}]}
    assert linked.result == {
        "resources": [{"uri": "note://1", "text": "hello"}],
        "links": [{"uri": "note://2", "name": "two"}],
    }


async def test_a_server_that_dies_comes_back(log: Path) -> None:
    async with ToolLibrary(sources=[honest(log)]) as library:
        record = await record_of(library, "box.die")
        assert (record.status, record.risk) == ("unknown", "irreversible")
        assert record.error is not None
        assert record.error.code == "OUTCOME_UNKNOWN"
        assert (await record_of(library, "box.resource")).success
        await until(lambda: not library.problems())
    assert noted(log).count("called die") == 1


async def test_a_read_is_repeated_where_the_server_died(log: Path) -> None:
    async with ToolLibrary(sources=[honest(log, trust_annotations=True)]) as library:
        record = await record_of(library, "box.read_or_die")
    assert (record.result, record.attempts) == ("read", 2)


async def resolvable(handle: Any) -> bool:
    return bool(await handle.wait() == "awaiting_resolution")


async def test_a_stored_run_waits_until_a_person_settles_what_is_unknown(log: Path, tmp_path: Path) -> None:
    library = ToolLibrary(sources=[honest(log)])
    store = f"sqlite:///{tmp_path / 'runs.db'}"
    model = ScriptedModel([call("box.die"), say("The box is gone.")])
    async with Journeyman(library=library, store=store, model=model) as app:
        agent = Agent(name="a", instruction="x", tools=[library["box.die"].specification])
        handle = await app.start(agent, "go", principal=Principal("ada"))
        assert await handle.wait() == "awaiting_approval"
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace")
        await until(lambda: resolvable(handle))
        [unknown] = await handle.unknown()
        assert unknown.status == "unknown"
        await handle.resolve(unknown.call_id, "done", result="it was done")
        response = await handle.result()
    assert response.answer == "The box is gone."
    assert [record.status for record in response.tool_calls] == ["success"]


async def test_what_a_server_logs_is_logged_without_its_words(log: Path, caplog: Any) -> None:
    caplog.set_level(logging.INFO, logger="journeyman.mcp")
    async with ToolLibrary(sources=[honest(log)]) as library:
        await record_of(library, "box.log")
    [entry] = [entry for entry in caplog.records if entry.name == "journeyman.mcp"]
    assert getattr(entry, LOG_FIELDS) == {"source": "box", "severity": "warning"}
    assert entry.levelno == logging.WARNING


def test_hints_raise_the_risk_and_lower_it_only_where_they_are_trusted() -> None:
    def found(*, trusted: bool, **hints: Any) -> Any:
        return graded(types.ToolAnnotations(**hints), trusted=trusted)

    nothing = (None, False, False)
    assert found(trusted=False) == found(trusted=True) == nothing
    assert found(trusted=False, read_only_hint=True, destructive_hint=False, idempotent_hint=True) == nothing
    assert found(trusted=False, destructive_hint=True) == (RiskLevel.IRREVERSIBLE, False, False)
    assert found(trusted=True, read_only_hint=True) == (RiskLevel.REVERSIBLE, True, True)
    assert found(trusted=True, destructive_hint=False) == (RiskLevel.REVERSIBLE_WITH_DELAY, False, False)
    assert found(trusted=True, destructive_hint=False, open_world_hint=False) == (RiskLevel.REVERSIBLE, False, False)
    assert found(trusted=True, destructive_hint=True, idempotent_hint=True) == (RiskLevel.IRREVERSIBLE, False, True)


async def test_a_lower_default_does_not_reach_what_a_server_calls_destructive(log: Path) -> None:
    policy = Policy(default_risk=RiskLevel.REVERSIBLE)
    async with ToolLibrary(sources=[honest(log)]) as library:
        agent = Agent(name="a", instruction="x", tools=library.specifications())
        model = ScriptedModel([call("box.resource"), call("box.die"), say("done")])
        response = await run(agent, "go", library=library, model=model, policy=policy)
    assert [record.status for record in response.tool_calls] == ["success", "denied"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "a b", "command": ["x"]}, "a name has"),
        ({"name": "a"}, "either a command or a url"),
        ({"name": "a", "command": "uvx server"}, "the command is a list"),
        ({"name": "a", "url": "file:///etc/passwd"}, "must begin with http"),
        ({"name": "a", "command": ["x"], "headers": {"a": "b"}}, "for servers with a url"),
        ({"name": "a", "url": "http://x", "env": {"a": "b"}}, "for servers with a command"),
        ({"name": "a", "url": "http://x", "timeout_seconds": 301}, "from 1 to 300"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        McpServer(**options)


def test_without_the_package_the_error_says_what_to_install() -> None:
    program = (
        "import sys, asyncio; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n"
        "from journeyman import ToolLibrary\nfrom journeyman.sources import McpServer\n"
        "asyncio.run(ToolLibrary(sources=[McpServer(command=['x'], name='x')]).open())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'journeyman[mcp]'" in done.stderr


@pytest.mark.slow
async def test_a_server_of_the_newer_protocol_brings_resources_and_prompts() -> None:
    source = McpServer(command=[sys.executable, str(PLAIN)], name="plain", **PATIENT)
    async with ToolLibrary(sources=[source]) as library:
        assert source.protocol_version == "2026-07-28"
        assert (await record_of(library, "plain.add", a=1, b=2)).result == {"result": 3}
        assert (await record_of(library, "plain.read_resource", uri="note://hello")).result == "hi there"
        filled = await record_of(library, "plain.get_prompt", name="greet", arguments={"name": "Bob"})
        assert filled.result == {"messages": [{"role": "user", "content": "Say hello to Bob"}]}
        listed = await record_of(library, "plain.list_resources")
        assert [item["uri"] for item in listed.result["resources"]] == ["note://hello"]
