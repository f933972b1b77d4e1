"""A configuration file at work: what it makes of tools and rules, and what an edit changes, and when."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

import journeyman.sources
from journeyman import Agent, ConfigurationError, Journeyman, Principal, RiskLevel, Tool, ToolSpecification
from journeyman.app.configuration import Configuration
from journeyman.settings import SettingsError, watching
from journeyman.settings.schema import Settings
from journeyman.testing import ScriptedModel, call, say
from tests.waiting import WAIT_SECONDS, until

TOOLS = '''
from pydantic import BaseModel
from journeyman import ToolContext, ToolError, ToolLibrary, tool

calls = []

@tool(read_only=True, category="shop")
def look(order_id: str, deep: bool = False, *, context: ToolContext) -> dict:
    """Look at an order. Use when one is named."""
    calls.append(order_id)
    return {"order_id": order_id, "deep": deep, "settings": dict(context.settings)}

@tool(risk="irreversible", category="shop", permissions={"orders:write"})
def delete(order_id: str) -> str:
    """Delete an order. Use when it must go."""
    return order_id

@tool(category="mail")
def send(to: str) -> str:
    """Send a mail. Use when somebody must know."""
    return to

def plain(text: str) -> str:
    """Say it again. Use when asked."""
    return text

library = ToolLibrary([look, send])
number = 5

class Shared(BaseModel):
    url: str
    retries: int = 0
'''
ADA = Principal("ada", permissions={"orders:read", "orders:write"})
ALL = Agent(name="hand", instruction="Work.", all_tools=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    import sys

    (tmp_path / "cfg_shop.py").write_text(TOOLS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("JOURNEYMAN_") and name != "JOURNEYMAN_AUDIT_KEY"]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(watching, "SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.5)
    yield tmp_path
    sys.modules.pop("cfg_shop", None)


def write(folder: Path, text: str) -> Path:
    file = folder / "journeyman.yaml"
    file.write_text(f"version: 1\nstore: sqlite:///{folder / 'x.db'}\n{text}\n")
    return file


def configured(folder: Path, text: str, **options: Any) -> Configuration:
    return Configuration(write(folder, text), options=options)


def problems(folder: Path, text: str) -> list[str]:
    file = write(folder, text)
    with pytest.raises(SettingsError) as caught:
        Configuration(file)
    return [str(item).removeprefix(f"{file}:") for item in caught.value.problems]


# --- tools


def test_a_tool_is_what_its_entry_its_category_and_its_environment_say(folder: Path) -> None:
    text = """
environment: staging
categories: {shop: {permissions: [orders:read], global_config: {url: http://x}, rate_limit: 9/min}}
tools:
  look:
    import: cfg_shop:look
    timeout_seconds: 7
    retries: 2
    cache: 1m
    parameters: {deep: true}
    permissions: [orders:look]
    environments: {staging: {timeout_seconds: 8}, production: {enabled: false}}
  again: {import: "cfg_shop.py:plain", risk: reversible}
limits: {calls_per_principal: 60/min, principals: {ada: 5/s}, calls: 100/s, iterations: 3}
approvals: {expire_after: 2h, grants: {risk: none, for: 5m}, four_eyes: true}
policy: {breaker: {enabled: false}, max_offered_tools: 9, wait: 1s}
"""
    found = configured(folder, text)
    look = found.library["look"]
    assert (look.specification.timeout_seconds, look.retries, look.cache_seconds) == (8, 2, 60)
    assert look.specification.permissions == {"orders:read", "orders:look"}
    assert look.settings == {"url": "http://x"}
    assert look.freeze('{"order_id":"W-1"}').arguments == {"order_id": "W-1", "deep": True}
    assert look.freeze('{"order_id":"W-1","deep":false}').arguments["deep"] is False
    assert found.library["again"].specification.risk is RiskLevel.REVERSIBLE
    policy = found.rules.policy
    assert policy.category_rate_limits["shop"].capacity == 9
    assert policy.principal_rate_limit is not None
    assert (policy.principal_rate_limits["ada"].calls, policy.overall_rate_limit.calls) == (5, 100)  # type: ignore[union-attr]
    assert (policy.breaker, policy.grant_risk, policy.four_eyes) == (None, None, True)
    assert (policy.stored_approval_seconds, policy.grant_seconds, policy.max_offered_tools) == (7_200, 300, 9)
    assert found.rules.limits.iterations == 3
    elsewhere = configured(folder, text, environment="production")
    assert elsewhere.library["look"].specification.enabled is False


def test_configuration_only_narrows(folder: Path) -> None:
    text = """
categories: {shop: {enabled: false}}
tools:
  delete: {import: cfg_shop:delete, permissions: [extra], enabled: true}
  send: {import: cfg_shop:send, risk: irreversible}
  look: {import: cfg_shop:look, risk: irreversible, category: general}
"""
    found = configured(folder, text)
    assert found.library["delete"].specification.permissions == {"orders:write", "extra"}
    assert found.library["delete"].specification.enabled is False  # its category is off
    assert found.rules.policy.least_risks["look"] is RiskLevel.IRREVERSIBLE
    assert problems(folder, "tools: {delete: {import: 'cfg_shop:delete', risk: reversible}}") == [
        "3:45: tools.delete.risk: the tool declares 'irreversible', and configuration only raises a risk"
    ]


def test_everything_that_is_wrong_with_tools_is_told_with_the_rest(folder: Path) -> None:
    text = """surprise: 1
toolkits: [taks, "cfg_shop:number"]
tools:
  a: {import: "cfg_shop:lok"}
  b: {import: "nowhere:x"}
  c: {import: "cfg_shop:library"}
  look: {import: "cfg_shop:look", cache: 5s, parameters: {dep: true, deep: maybe}}
  send: {import: "cfg_shop:send", cache: 5s}
  lok: {timeout_seconds: 5}
categories:
  shopp: {}
  shop: {schema: "cfg_shop:Shared", global_config: {retries: many}}
  mail: {schema: {required: [host]}, global_config: {}}
"""
    found = problems(folder, text)
    for told in (
        "3:1: surprise: unknown key",
        "4:12: toolkits[0]: no toolkit is called 'taks'; did you mean 'tasks'?",
        "4:18: toolkits[1]: 'cfg_shop:number' is an int, not a ToolLibrary",
        "6:7: tools.a.import: 'cfg_shop:lok' names nothing: module 'cfg_shop' has no 'lok'; did you mean",
        "7:7: tools.b.import: 'nowhere:x' names no module",
        "8:7: tools.c.import: 'cfg_shop:library' is a library; name one tool",
        "9:59: tools.look.parameters.dep: 'look' has no parameter of this name; did you mean 'deep'?",
        '9:70: tools.look.parameters.deep: "maybe" is not of type "boolean"',
        "10:35: tools.send.cache: only results of tools that are read-only",
        "11:3: tools.lok: there is no such tool; did you mean 'look'?",
        "13:3: categories.shopp: no tool has this category; did you mean 'shop'?",
        "14:37: categories.shop.global_config.url: missing (required)",
        "14:53: categories.shop.global_config.retries: must be an integer",
        'categories.mail.global_config: "host" is a required property',
    ):
        assert any(told in line for line in found), (told, found)
    assert len(found) == 14


def test_without_tools_of_its_own_a_file_brings_those_over_tasks(folder: Path) -> None:
    assert "create_task" in configured(folder, "").library
    assert configured(folder, "toolkits: [hello]").library.names() == ["sayHello"]
    only = configured(folder, "toolkits: [hello]\ntools: {sayHello: {timeout_seconds: 3}}").library
    assert only["sayHello"].specification.timeout_seconds == 3


# --- runs


async def one(app: Journeyman, principal: Principal | None = ADA) -> Any:
    handle = await app.start(ALL, "go", principal=principal)
    [record] = (await handle.result()).tool_calls
    return record


def looking() -> ScriptedModel:
    return ScriptedModel([call("look", order_id="W-1"), say("done")])


def edited(app: Journeyman) -> str:
    assert app.configuration is not None
    return app.configuration.loaded.digest


async def edit(app: Journeyman, folder: Path, text: str) -> None:
    """Write the file, and wait until it was taken over or refused."""
    assert app.configuration is not None
    before, refused = edited(app), app.configuration.problems
    write(folder, text)
    await until(lambda: edited(app) != before or app.configuration.problems != refused)  # type: ignore[union-attr]


@pytest.mark.parametrize(("risk", "status"), [("irreversible", "awaiting_approval"), ("reversible", "completed")])
async def test_a_risk_in_the_file_raises_that_of_a_tool_that_only_reads_and_a_person_is_asked(
    folder: Path, risk: str, status: str
) -> None:
    file = write(folder, f"tools: {{look: {{import: 'cfg_shop:look', risk: {risk}}}}}")
    async with Journeyman.from_config(file, model=looking()) as app:
        handle = await app.start(ALL, "go", principal=ADA)
        assert await handle.wait() == status
        assert len(await app.approvals.pending()) == (status == "awaiting_approval")


async def test_permissions_of_a_category_are_filtered_in_the_offer_and_enforced_at_the_call(folder: Path) -> None:
    model = looking()
    text = "categories: {shop: {permissions: [orders:read]}}\ntools: {look: {import: 'cfg_shop:look'}}"
    async with Journeyman.from_config(write(folder, text), model=model) as app:
        assert (await one(app)).status == "success"
        assert (await one(app, None)).error.code == "NOT_PERMITTED"
    assert [[item.name for item in request.tools] for request in model.requests[::2]] == [["look"], []]


async def test_an_edit_takes_effect_and_a_wrong_one_changes_nothing_and_is_reported(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    right = "tools: {look: {import: 'cfg_shop:look', timeout_seconds: 5}}"
    with caplog.at_level(logging.INFO, "journeyman.settings"):
        async with Journeyman.from_config(write(folder, right), model=looking()) as app:
            assert app.configuration is not None
            assert (await one(app)).status == "success"
            await edit(app, folder, right.replace("timeout_seconds: 5", "timeout_seconds: 500"))
            assert [problem.key for problem in app.configuration.problems] == ["tools.look.timeout_seconds"]
            assert app.library["look"].specification.timeout_seconds == 5
            assert (await one(app)).status == "success"
            assert "cannot be used; what held before still holds" in caplog.text
            await edit(
                app, folder, right.replace("timeout_seconds: 5", "enabled: false") + "\ndoors: {http: {port: 1}}"
            )
            assert (app.configuration.problems, app.configuration.restart_needed) == ((), ("doors",))
            assert (await one(app)).error.code == "UNKNOWN_TOOL"
            assert "taken over only by a restart: doors" in caplog.text
            (folder / "journeyman.yaml").unlink()
            await until(lambda: bool(app.configuration and app.configuration.problems))
            assert "the file is gone" in str(app.configuration.problems[0])
            await edit(app, folder, right)
            assert (await one(app)).status == "success"


LATER = '''
from pathlib import Path

Path("imported").touch()

def more() -> str:
    """Say more. Use when asked."""
    return "more"
'''


async def test_an_edit_of_a_file_that_others_can_write_brings_no_code(folder: Path) -> None:
    right = "tools: {look: {import: 'cfg_shop:look', timeout_seconds: 5}}"
    (folder / "cfg_later.py").write_text(LATER)
    file = write(folder, right)
    file.chmod(0o666)
    async with Journeyman.from_config(file, model=looking()) as app:
        assert app.configuration is not None
        await edit(app, folder, right.replace("5}}", "6}, more: {import: 'cfg_later:more'}}"))
        assert "it now runs the code of cfg_later:more; nobody has agreed to that" in str(app.configuration.problems[0])
        assert not (folder / "imported").exists()
        assert app.library["look"].specification.timeout_seconds == 5  # nothing else of the edit holds, either
        await edit(app, folder, right.replace("5}}", "7}}"))
        assert app.library["look"].specification.timeout_seconds == 7


async def test_a_file_of_ones_own_says_nothing_of_what_another_one_held_before_it(folder: Path) -> None:
    right = "tools: {look: {import: 'cfg_shop:look'}}"
    (folder / "cfg_later.py").write_text(LATER)
    file = write(folder, right)
    foreign = (file.read_text() + "toolkits: ['cfg_later:more']\n").encode()
    async with Journeyman.from_config(file, model=looking()) as app:
        assert app.configuration is not None
        # What somebody else's file held was read, and meanwhile one's own has been put in its place.
        assert not await app.configuration.take_over(foreign)
        assert "it now runs the code of cfg_later:more" in str(app.configuration.problems[0])
        assert not (folder / "imported").exists()


async def test_an_edit_that_was_held_back_takes_effect_when_somebody_agrees(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journeyman.app.configuration.AGREED_SECONDS", 0.02)
    (folder / "cfg_later.py").write_text(LATER)
    file = write(folder, "tools: {look: {import: 'cfg_shop:look'}}")
    agreed: list[str] = []
    configuration = Configuration(
        file,
        gate=lambda path, names: [name for name in names if name.text not in agreed],
        confirmed_by="type this",
    )
    async with Journeyman(configuration=configuration, store=configuration.database, model=looking()) as app:
        edited = "tools: {look: {import: 'cfg_shop:look'}, more: {import: 'cfg_later:more', risk: reversible}}"
        await edit(app, folder, edited)
        assert [str(problem).endswith("agreed to that: type this") for problem in configuration.problems] == [True]
        assert "more" not in app.library
        agreed.append("cfg_later:more")
        await until(lambda: "more" in app.library)
        assert configuration.problems == ()


async def test_which_version_holds_is_in_the_audit(folder: Path) -> None:
    first, second = "tools: {look: {import: 'cfg_shop:look'}}", "tools: {look: {import: 'cfg_shop:look', retries: 1}}"

    async def audited(app: Journeyman) -> list[str]:
        rows = await app.store.audit.list(kind="configuration_changed")
        assert all(row.subject == str(folder / "journeyman.yaml") and row.details["tools"] == ["look"] for row in rows)
        return [row.details["digest"] for row in rows]

    async with Journeyman.from_config(write(folder, first), model=looking()) as app:
        assert app.configuration is not None
        digests = [app.configuration.loaded.digest]
        assert await audited(app) == digests
        await edit(app, folder, second)
        digests.append(app.configuration.loaded.digest)
        await edit(app, folder, second.replace("retries", "retrys"))  # which changes nothing
        assert await audited(app) == digests
    async with Journeyman.from_config(write(folder, second), model=looking()) as app:
        assert await audited(app) == digests  # still the same
    async with Journeyman.from_config(write(folder, first), model=looking()) as app:
        assert await audited(app) == [*digests, digests[0]]


class Waiting(ScriptedModel):
    """Before each answer it waits until it is let go."""

    def __init__(self, *turns: Any) -> None:
        super().__init__(list(turns))
        self.asked, self.go = asyncio.Event(), asyncio.Semaphore(0)

    async def respond(self, request: Any, deltas: Any = None) -> Any:
        self.asked.set()
        await self.go.acquire()
        return await super().respond(request, deltas)


async def test_an_edit_holds_for_the_next_step_and_not_for_the_calls_of_this_one(folder: Path) -> None:
    model = Waiting(call("look", order_id="W-1"), call("look", order_id="W-2"), say("done"))
    right = "tools: {look: {import: 'cfg_shop:look'}}"
    async with Journeyman.from_config(write(folder, right), model=model) as app:
        handle = await app.start(ALL, "go")
        await model.asked.wait()
        await edit(app, folder, right.replace("}}", ", risk: irreversible, permissions: [orders:read]}}"))
        for _ in range(3):  # the first answer is a call of what was offered before the edit
            model.go.release()
        first, second = (await handle.result()).tool_calls
    assert (first.status, first.risk) == ("success", "reversible")
    assert (second.status, second.error and second.error.code) == ("denied", "NOT_PERMITTED")


async def test_the_model_of_the_file_answers_for_agents_that_name_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_NAME", "small")
    async with Journeyman.from_config(write(folder, "model: 'ollama:${MODEL_NAME}'")) as app:
        assert getattr(app.model_for(ALL), "name", "").endswith("small")
        assert getattr(app.model_for(ALL.model_copy(update={"model": "ollama:own"})), "name", "").endswith("own")


# --- servers


class Server:
    """In the place of an MCP server."""

    opened: ClassVar[list[str]] = []

    def __init__(self, *, name: str, command: Sequence[str] = (), url: str = "", **given: Any) -> None:
        self.name, self.given = name, {**given, "command": command, "url": url}

    async def open(self) -> None:
        if "broken" in self.given["command"]:
            raise ConfigurationError("'broken' did not answer")
        Server.opened.append(f"+{self.name}")

    async def list(self) -> Sequence[Tool[..., Any]]:
        specification = ToolSpecification(name=f"{self.name}.look", description="Looks.", read_only=True)
        return [Tool.from_specification(specification, lambda **_: "looked")]

    async def watch(self) -> AsyncIterator[None]:
        return
        yield

    async def close(self) -> None:
        Server.opened.append(f"-{self.name}")


def test_what_a_server_cannot_be_told_is_told_with_its_place(folder: Path) -> None:
    [found] = problems(folder, "mcp: {a b: {command: [x]}}")
    assert found.startswith("3:7: mcp.a b: MCP server 'a b': a name has")
    server = configured(folder, "mcp: {a: {command: [x], only: [look], permissions: [p], start: 3s}}")._sources["a"]
    assert server.name == "a"


async def test_servers_come_and_go_with_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journeyman.sources, "McpServer", Server, raising=False)
    monkeypatch.setattr(Server, "opened", [])
    monkeypatch.setenv("TOKEN", "t-123")
    files = "  files: {command: [run, files]}\n"
    crm = '  crm: {url: "http://crm", headers: {Authorization: "Bearer ${TOKEN}"}}\n'
    rules = "categories: {files: {permissions: [files:read]}}\ntools: {files.look: {timeout_seconds: 4}}\n"
    async with Journeyman.from_config(write(folder, f"{rules}mcp:\n{files}"), model=looking()) as app:
        assert app.configuration is not None
        assert app.library.names() == ["files.look"]
        look = app.library["files.look"].specification
        assert (look.category, look.timeout_seconds) == ("files", 4)
        assert look.permissions == {"files:read"}
        await edit(app, folder, f"{rules}mcp:\n{files}{crm}")
        assert sorted(app.library.names()) == ["crm.look", "files.look"]
        assert app.configuration._sources["crm"].given["headers"] == {"Authorization": "Bearer t-123"}  # type: ignore[attr-defined]
        assert Server.opened == ["+files", "+crm"]  # the first was left alone
        await edit(app, folder, f"{rules}mcp:\n{files}{crm}  bad: {{command: [broken]}}\n")
        assert "'broken' did not answer" in str(app.configuration.server_problems()[0])
        assert "'broken' did not answer" in app.configuration.status()["problems"][0]
        assert sorted(app.library.names()) == ["crm.look", "files.look"]
        await edit(app, folder, f"mcp:\n{crm}")
        assert app.library.names() == ["crm.look"]
        await until(lambda: Server.opened == ["+files", "+crm", "-files"])  # closed when the others are there
    assert Server.opened[-1] == "-crm"


async def test_the_first_server_of_a_file_starts_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journeyman.sources, "McpServer", Server, raising=False)
    monkeypatch.setattr(Server, "opened", [])
    async with Journeyman.from_config(write(folder, "toolkits: [hello]"), model=looking()) as app:
        await edit(app, folder, "toolkits: [hello]\nmcp: {files: {command: [run, files]}}")
        assert "files.look" in app.library
        assert Server.opened == ["+files"]
    assert Server.opened == ["+files", "-files"]


CONFIRMED_CHECK = """
import sys
from pathlib import Path
from journeyman.doors.cli import main
from journeyman.doors.cli.trust import remember_own
remember_own(Path("journeyman.yaml"))
sys.argv = ["journeyman", "config", "check"]
main()
"""


@pytest.mark.slow
def test_a_gateway_tells_what_is_wrong_with_its_file_like_any_command(tmp_path: Path) -> None:
    (tmp_path / "journeyman.yaml").write_text("version: 1\ntools:\n  nosuch: {enabled: false}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "journeyman", "mcp", "serve"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    assert "journeyman.yaml:3:3: tools.nosuch: there is no such tool" in ended.stderr


@pytest.mark.slow
def test_a_server_that_reads_the_file_that_names_it_does_not_start_itself_without_end(tmp_path: Path) -> None:
    again = json.dumps([sys.executable, "-m", "journeyman", "mcp", "serve"])
    (tmp_path / "journeyman.yaml").write_text(f"version: 1\nmcp: {{again: {{command: {again}, start: 60s}}}}\n")
    ended = subprocess.run(
        [sys.executable, "-c", CONFIRMED_CHECK],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    assert "it is started by a program that reads this very file" in ended.stderr


async def test_one_broken_server_takes_nothing_else_down(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journeyman.sources, "McpServer", Server, raising=False)
    both = "mcp: {bad: {command: [broken]}, good: {command: [run]}}"
    async with Journeyman.from_config(write(folder, both), model=looking()) as app:
        assert app.configuration is not None
        assert app.library.names() == ["good.look"]
        [problem] = app.configuration.server_problems()
        assert problem.key == "mcp.bad.command"


async def test_a_name_that_fits_no_tool_of_a_server_turns_its_tools_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journeyman.sources, "McpServer", Server, raising=False)
    servers = "mcp: {files: {command: [run]}, crm: {command: [run]}}\n"
    async with Journeyman.from_config(
        write(folder, f"{servers}tools: {{files.loook: {{permissions: [admin]}}}}"), model=looking()
    ) as app:
        assert app.configuration is not None
        on = {item.name: item.specification.enabled for item in app.library}
        assert on == {"files.look": False, "crm.look": True}
        [problem] = app.configuration.server_problems()
        assert "did you mean 'files.look'?" in problem.message
        await edit(app, folder, f'{servers}tools: {{"files.l*": {{permissions: [admin]}}}}')
        assert app.configuration.server_problems() == []
        assert app.library["files.look"].specification.enabled
        assert app.library["files.look"].specification.permissions == {"admin"}
        assert app.library["crm.look"].specification.permissions == frozenset()


async def test_a_function_written_after_its_module_was_imported_waits_for_a_restart_alone(folder: Path) -> None:
    (folder / "cfg_late.py").write_text("def first() -> int:\n    '''Count.'''\n    return 1\n")
    entry = 'tools: {{first: {{import: "cfg_late:first", timeout_seconds: {}}}{}}}'
    async with Journeyman.from_config(write(folder, entry.format(5, "")), model=looking()) as app:
        assert app.configuration is not None
        with (folder / "cfg_late.py").open("a") as file:
            file.write("def second() -> int:\n    '''Count.'''\n    return 2\n")
        await edit(app, folder, entry.format(6, ', second: {import: "cfg_late:second"}'))
        assert app.library.names() == ["first"]
        assert app.library["first"].specification.timeout_seconds == 6
        [problem] = app.configuration.problems
        assert (problem.key, "restart" in problem.message) == ("tools.second.import", True)


# --- many edits while runs go on


VERSION = """\
tools: {{look: {{import: "cfg_shop:look", parameters: {{deep: {deep}}}, timeout_seconds: 20}}}}
categories: {{shop: {{global_config: {{n: {n}}}}}}}"""
EVEN, ODD = VERSION.format(deep="true", n=2), VERSION.format(deep="false", n=1)


def change(folder: Path, kind: str, text: str) -> None:
    """One edit, as people, editors and tools make them."""
    file, text = folder / "journeyman.yaml", f"version: 1\nstore: sqlite:///{folder / 'x.db'}\n{text}\n"
    aside = folder / "aside.yaml"
    match kind:
        case "in place":
            file.write_text(text)
        case "half":
            file.write_text(text[: len(text) * 2 // 3])
        case "invalid":
            file.write_text(text.replace("timeout_seconds", "timeout_second"))
        case "renamed":
            aside.write_text(text)
            aside.replace(file)
        case "deleted":
            file.unlink(missing_ok=True)
        case "linked":
            target = folder / f"target-{random.randrange(3)}.yaml"
            target.write_text(text)
            aside.unlink(missing_ok=True)
            aside.symlink_to(target)
            aside.replace(file)


def holds(app: Journeyman, deep: bool) -> bool:
    found = app.configuration
    return found is not None and not found.problems and found.settings.tools["look"].parameters == {"deep": deep}


async def many_edits(folder: Path, count: int, seed: int) -> dict[str, int]:
    """Edits without a pause while runs go on; every call must have seen one whole version, and the last one holds."""
    chance = random.Random(seed)
    write(folder, EVEN)
    counts = {"runs": 0, "edits": 0}
    stop = asyncio.Event()
    async with Journeyman.from_config("journeyman.yaml", model=looking(), poll_seconds=60) as app:
        assert app.configuration is not None
        taken: list[str] = []
        real = app.configuration._take_intents

        def noted(settings: Settings | None) -> None:
            if settings is not None:
                taken.append(edited(app))
            real(settings)

        app.configuration._take_intents = noted  # type: ignore[method-assign]

        async def running() -> None:
            while not stop.is_set():
                record = await one(app)
                assert record.status == "success", record.error
                # Values of arguments, of the category and of the tool come from one version.
                result = record.result
                assert result["settings"]["n"] == (2 if result["deep"] else 1), result
                counts["runs"] += 1

        runners = [asyncio.create_task(running()) for _ in range(2)]
        kinds = ["in place", "half", "invalid", "renamed", "deleted", "linked"]
        for number in range(count):
            await asyncio.to_thread(change, folder, chance.choice(kinds), EVEN if number % 2 else ODD)
            counts["edits"] += 1
            await asyncio.sleep(chance.choice([0, 0.001, 0.01, 0.08]))
            assert not any(task.done() for task in runners), [task for task in runners if task.done()]
        for text, deep in ((EVEN, True), (ODD, False)):
            change(folder, "renamed", text)
            await until(partial(holds, app, deep))
        stop.set()
        await asyncio.gather(*runners)
        counts["taken over"] = len(taken)
        assert (await one(app)).result["settings"] == {"n": 1}
    return counts


@pytest.mark.slow
async def test_many_edits_while_runs_go_on(folder: Path) -> None:
    counts = await many_edits(folder, 40, seed=1)
    assert counts["runs"] > 0
    assert counts["taken over"] >= 2


@pytest.mark.nightly
@pytest.mark.timeout(1_800)
async def test_a_thousand_edits_while_runs_go_on(folder: Path) -> None:
    print(await many_edits(folder, 1_000, seed=2))
