"""Durable runs: advised by the playbook of their domain, learned from exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from journeyman import Agent, Journeyman, Principal, RiskLevel, TaskInput, tool
from journeyman.core.events import StrategiesInjected
from journeyman.learning import LearningSettings
from journeyman.testing import ScriptedModel, call, say

MAILS = ("anna@corp.example", "bert@corp.example", "carla@corp.example", "dora@corp.example")
PEOPLE = {mail.partition("@")[0].capitalize(): mail for mail in MAILS}
TOOLS = ["find_person", "send_note"]
ASKED = "Tell Dora that lunch is ready"


@tool(risk=RiskLevel.REVERSIBLE, read_only=True)
def find_person(name: str) -> dict[str, str]:
    """Find a person's address by name. Use when a person is named."""
    return {"email": PEOPLE[name]}


@tool(risk=RiskLevel.REVERSIBLE)
def send_note(to: str, text: str) -> str:
    """Send a note to an address. Use when somebody is to be told something."""
    return "sent"


AGENT = Agent(name="office", instruction="Help.", tools=[find_person, send_note])


class Teller:
    """Tells whoever the task names, the right way."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def respond(self, request: Any, deltas: Any = None) -> Any:
        self.requests.append(request)
        task = next(item for item in reversed(request.messages) if item.role == "user" and item.name is None)
        name = next(name for name in PEOPLE if name in task.content)
        note = call("send_note", to=PEOPLE[name], text="Lunch is ready")
        return await ScriptedModel([call("find_person", name=name), note, say("Told.")]).respond(request, deltas)


def task(name: str) -> TaskInput:
    return TaskInput(description=f"Tell {name} that lunch is ready", domain="office")


async def test_a_pattern_is_offered_after_it_was_seen_to_work_and_never_counted_twice(tmp_path: Path) -> None:
    model, url = Teller(), f"sqlite:///{tmp_path / 's.db'}"
    async with Journeyman(store=url, model=model, learning=LearningSettings(holdout=0)) as app:
        for name in ("Anna", "Bert"):
            await (await app.start(AGENT, task(name))).result()
        assert await app.playbooks.learn() == 2
        assert await app.playbooks.learn() == 0
        assert await app.playbooks.domains() == ["office"]
        [strategy] = await app.playbooks["office"].strategies()
        assert (strategy.tool_sequence, strategy.helpful_count) == (tuple(TOOLS), 2)
        assert not [value for value in (*PEOPLE, *PEOPLE.values()) if value in strategy.model_dump_json()]

        handle = await app.start(AGENT, task("Carla"))
        await handle.result()
        [injected] = [event async for event in handle.events() if isinstance(event, StrategiesInjected)]
        given = [(item.strategy_id, item.holdout, item.form) for item in injected.advice]
        assert given == [(strategy.id, False, "steps")]
        said = model.requests[-1].messages
        assert [item.name for item in said if item.role == "user"] == [None, "next_step"]
    async with Journeyman(store=url, model=model) as app:
        assert await app.playbooks.learn() == 0  # the app that closed has taken it in
        [strategy] = await app.playbooks["office"].strategies()
        assert (strategy.helpful_count, strategy.recent) == (3, (True,))


async def test_an_app_may_keep_its_playbooks_in_a_folder(tmp_path: Path) -> None:
    learning = LearningSettings(folder=tmp_path / "playbooks", holdout=0)
    async with Journeyman(store=f"sqlite:///{tmp_path / 's.db'}", model=Teller(), learning=learning) as app:
        for name in ("Anna", "Bert"):
            await (await app.start(AGENT, task(name))).result()
        assert (await app.playbooks.learn(), await app.playbooks.learn()) == (2, 0)
    lines = (tmp_path / "playbooks" / "tool-calling" / "office" / "strategies.jsonl").read_text().splitlines()
    assert len(lines) == 2  # the strategy, and how runs without advice went


async def test_a_rating_that_comes_later_counts(tmp_path: Path) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path / 's.db'}", model=Teller()) as app:
        handles = [await app.start(AGENT, task(name)) for name in ("Anna", "Bert")]
        for handle in handles:
            await handle.result()
        await handles[0].rate("bad", by="ada")
        await app.playbooks.learn()
        [strategy] = await app.playbooks["office"].strategies()
        assert (strategy.helpful_count, strategy.harmful_count, strategy.state) == (1, 1, "shadow")
        await handles[1].rate("bad", by="ada")
        [strategy] = await app.playbooks["office"].strategies()
        assert (strategy.helpful_count, strategy.harmful_count) == (0, 2)
        assert strategy.label_sources == {"judge": 1, "rating": 2}


async def test_what_is_learned_from_a_principal_is_theirs(tmp_path: Path) -> None:
    ada, bob = Principal("ada"), Principal("bob")
    async with Journeyman(store=f"sqlite:///{tmp_path / 's.db'}", model=Teller()) as app:
        for name in ("Anna", "Bert", "Carla"):
            await (await app.start(AGENT, task(name), principal=ada)).result()
        await app.playbooks.learn()
        playbook = app.playbooks["office"]
        assert len(await playbook.retrieve(ASKED, tools=TOOLS, principal=ada)) == 1
        assert await playbook.retrieve(ASKED, tools=TOOLS, principal=bob) == []
        assert await playbook.retrieve(ASKED, tools=TOOLS) == []


async def test_stored_runs_and_chains_teach(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    async with Journeyman(store=url, model=Teller(), library=AGENT.own_library) as app:
        note = {"to": "$0.email", "text": "Lunch is ready"}
        steps = [{"tool": "find_person", "args": {"name": "Anna"}}, {"tool": "send_note", "args": note}]
        await app.chain(steps, run_id="run_by_hand")
        playbook = app.playbooks["office"]
        assert await playbook.learn("run_by_hand", request="Tell Anna that lunch is ready") == 1
        [strategy] = await playbook.retrieve(ASKED, tools=TOOLS)
        assert strategy.tags == ("taught",)
        assert await app.playbooks.learn() == 0  # a chain's own words are no request
