"""Playbooks in both databases and in folders: one set of promises."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from journeyman import ConfigurationError
from journeyman.core.errors import JournalConflictError, PlaybookConflictError
from journeyman.core.playbook import PlaybookChange, PlaybookStore, StrategyState
from journeyman.learning import PlaybookBullet, ToolCallingStrategy
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.learning.playbook import MemoryPlaybooks, Playbook
from journeyman.stores.playbook_files import LAYOUT, LOG, FilePlaybooks
from journeyman.stores.store import SqlStore, open_store
from tests.stores.samples import order


@pytest_asyncio.fixture(params=["memory", "files", "sqlite", "postgresql"])
async def playbooks(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PlaybookStore]:
    if request.param == "memory":
        yield MemoryPlaybooks()
        return
    if request.param == "files":
        yield FilePlaybooks(tmp_path)
        return
    url = f"sqlite:///{tmp_path / 's.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    store = open_store(url)
    await store.open()
    yield store.playbooks
    await store.close()


def strategy(name: str, helpful: int = 1) -> ToolCallingStrategy:
    return ToolCallingStrategy(
        id=name, content=f"Do {name}.", tool_sequence=("look", name), helpful_count=helpful, example_task=name
    )


def change(expected: int, *bullets: PlaybookBullet, removed: tuple[str, ...] = ()) -> PlaybookChange:
    return PlaybookChange(domain="shop", expected=expected, bullets=bullets, removed=removed, reason=f"no. {expected}")


async def test_what_was_committed_is_read_by_its_versions(playbooks: PlaybookStore) -> None:
    assert await playbooks.commit([change(0, strategy("a"), PlaybookBullet(id="b", content="Look."))], now=1) == {
        "shop": 1
    }
    await playbooks.commit([change(1, strategy("a", 2), strategy("c"))], now=2)
    await playbooks.commit([change(2, removed=("b",))], now=3)

    whole = await playbooks.read("shop")
    assert (whole.version, {item.id: item.helpful_count for item in whole.bullets}) == (3, {"a": 2, "c": 1})
    newer = await playbooks.read("shop", after=1)
    assert ({item.id for item in newer.bullets}, newer.removed) == ({"a", "c"}, ("b",))
    assert (await playbooks.read("shop", after=3)).bullets == ()
    first = await playbooks.at("shop", 1)
    assert {item.id: type(item) for item in first.bullets} == {"a": ToolCallingStrategy, "b": PlaybookBullet}
    assert [(item.version, item.reason, item.changed, item.removed) for item in await playbooks.history("shop")] == [
        (3, "no. 2", 0, 1),
        (2, "no. 1", 2, 0),
        (1, "no. 0", 2, 0),
    ]
    assert await playbooks.domains() == ["shop"]
    with pytest.raises(ConfigurationError, match="no version 9"):
        await playbooks.at("shop", 9)


async def test_a_change_of_an_older_version_is_refused_whole(playbooks: PlaybookStore) -> None:
    await playbooks.commit([change(0, strategy("a"))], now=1)
    with pytest.raises(PlaybookConflictError, match="shop"):
        await playbooks.commit([change(0, strategy("b"))], now=2)
    assert [item.id for item in (await playbooks.read("shop")).bullets] == ["a"]


async def test_a_rollback_restores_exactly(playbooks: PlaybookStore) -> None:
    playbook = Playbook("shop", store=playbooks, embedder=None)
    await playbook.put([strategy("a", 3), PlaybookBullet(id="b", content="Look.")])
    before = await playbook.at(playbook.version)
    await playbook.put([strategy("a", 9), strategy("c")])
    await playbook.set_state("a", StrategyState.RETIRED)
    await playbook.rollback(to=1)
    after = await Playbook("shop", store=playbooks, embedder=None).at(playbook.version)
    assert {item.id: item for item in after.bullets} == {item.id: item for item in before.bullets}
    assert [item.reason for item in await playbook.history(limit=1)] == ["rolled back to version 1"]


async def test_a_batch_of_runs_is_taken_in_once(store: SqlStore, tmp_path: Path) -> None:
    await store.runs.create(order("run-1"))
    epoch = await store.runs.claim("run-1", owner="w", lease_seconds=60)
    assert epoch is not None
    await _end(store, "run-1", epoch)
    batch = await store.cursors.take("playbooks", owner="w", lease_seconds=60)
    assert batch is not None
    await store.playbooks.commit([change(0, strategy("a"))], now=1, batch=batch)
    with pytest.raises(JournalConflictError):
        await store.playbooks.commit([change(1, strategy("b"))], now=1, batch=batch)
    assert [item.id for item in (await store.playbooks.read("shop")).bullets] == ["a"]
    assert await store.cursors.take("playbooks", owner="w", lease_seconds=60) is None

    files = FilePlaybooks(tmp_path / "files")
    await files.commit([change(0, strategy("a"))], now=1, batch=batch)
    assert await files.commit([change(1, strategy("b"))], now=1, batch=batch) == {"shop": 1}


async def _end(store: SqlStore, run_id: str, epoch: int) -> None:
    from journeyman.core.events import RunFinished
    from journeyman.core.runs import RunStatus

    fact = RunFinished(status=RunStatus.COMPLETED)
    fact.stamp(run_id, 1, 1.0)
    await store.runs.journal(run_id, epoch=epoch).append(run_id, [fact])


# --- folders


async def test_bullets_of_other_programs_load_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / LAYOUT / "rag"
    folder.mkdir(parents=True)
    old = {
        "content": "Quote your sources.",
        "section": "Observations",
        "helpful_count": 4,
        "harmful_count": 1,
        "tags": ["x"],
    }
    tools = {
        "content": "Filter first.",
        "section": "Strategies",
        "helpful_count": 15,
        "harmful_count": 2,
        "tags": ["rag"],
        "tool_sequence": ["temporal_filter", "search_vector_db"],
        "tool_success_rate": 0.88,
        "avg_iterations": 3,
        "example_task": "Find Q3 sales data for enterprise customers",
        "created_at": "2025-10-16T10:30:00Z",
        "last_updated": "2025-10-16T15:45:00Z",
    }
    (folder / "bullets.jsonl").write_text(json.dumps(old) + "\n\n")
    (folder / "strategies.jsonl").write_text(json.dumps(tools) + "\n")
    playbook = Playbook("rag", store=FilePlaybooks(tmp_path), embedder=None)
    found = {item.content: item for item in await playbook.bullets()}
    assert type(found["Quote your sources."]) is PlaybookBullet
    [strategy] = await playbook.strategies()
    assert strategy.state is StrategyState.ACTIVE
    assert {name: value for name, value in strategy.model_dump(mode="json").items() if name in tools} == {
        **tools,
        "tool_success_rate": 15 / 17,
    }
    asked = "Find Q3 sales data"
    there = ["temporal_filter", "search_vector_db"]
    assert await playbook.retrieve(asked, tools=there[:1]) == []
    assert [item.id for item in await playbook.retrieve(asked, tools=there)] == [strategy.id]

    await playbook.set_state(strategy.id, StrategyState.QUARANTINED)
    again = {item.content for item in await Playbook("rag", store=FilePlaybooks(tmp_path), embedder=None).bullets()}
    assert again == set(found)
    lines = (folder / "strategies.jsonl").read_text().splitlines()
    assert {json.loads(line)["content"] for line in lines} == set(found)
    index = json.loads((folder / "index.json").read_text())
    assert index["format"] == 1
    assert index["bullets"][strategy.id] == {
        "has_tool_sequence": True,
        "domain": "rag",
        "tool_count": 2,
        "success_rate": 15 / 17,
    }
    await playbook.rollback(to=0)
    assert (await playbook.strategies())[0].state is StrategyState.ACTIVE


async def test_a_line_that_was_not_finished_is_not_there(tmp_path: Path) -> None:
    files = FilePlaybooks(tmp_path)
    await files.commit([change(0, strategy("a"))], now=1)
    log = tmp_path / LAYOUT / "shop" / LOG
    with log.open("ab") as end:
        end.write(b'{"version": 2, "put": [{"id": "half')
    (tmp_path / LAYOUT / "shop" / "strategies.jsonl.new").write_text("{half")
    again = FilePlaybooks(tmp_path)
    assert [item.id for item in (await again.read("shop")).bullets] == ["a"]
    assert await again.commit([change(1, strategy("b"))], now=2) == {"shop": 2}
    assert {item.id for item in (await files.read("shop")).bullets} == {"a", "b"}


async def test_a_bad_line_is_named(tmp_path: Path) -> None:
    folder = tmp_path / LAYOUT / "rag"
    folder.mkdir(parents=True)
    (folder / "x.jsonl").write_text('{"content": "Fine."}\n{"content": ""}\n')
    with pytest.raises(ConfigurationError, match=r"x\.jsonl, line 2"):
        await FilePlaybooks(tmp_path).read("rag")
    with pytest.raises(ConfigurationError, match="cannot be the name of a folder"):
        await FilePlaybooks(tmp_path).read("../rag")


# --- many writers


def _episode(writer: int, number: int) -> Episode:
    call = EpisodeCall("send_note", {"to": "somebody"}, "ok", effect=True)
    return Episode("Send a note to the team", (call,), run_id=f"run-{writer}-{number}")


def _write(urls: list[str], writer: int, count: int) -> None:
    async def write(kept: PlaybookStore) -> None:
        playbook = Playbook("shop", store=kept, embedder=None)
        for number in range(count):
            await playbook.feed(_episode(writer, number))

    async def write_all(folder: str) -> None:
        await write(FilePlaybooks(folder))
        for url in urls[1:]:
            store = open_store(url)
            await store.open()
            await write(store.playbooks)
            await store.close()

    asyncio.run(write_all(urls[0]))


@pytest.mark.slow
async def test_eight_processes_write_one_playbook_and_nothing_is_lost(tmp_path: Path, postgres_url: str) -> None:
    urls = [str(tmp_path), f"sqlite:///{tmp_path / 's.db'}", postgres_url]
    writers, count = 8, 4
    for url in urls[1:]:
        store = open_store(url)
        await store.open()
        await store.close()
    processes = multiprocessing.get_context("spawn")
    running = [processes.Process(target=_write, args=(urls, writer, count)) for writer in range(writers)]
    for process in running:
        process.start()
    for process in running:
        await asyncio.to_thread(process.join)
    assert [process.exitcode for process in running] == [0] * writers
    stores = [open_store(url) for url in urls[1:]]
    for store in stores:
        await store.open()
    every: list[PlaybookStore] = [FilePlaybooks(tmp_path), *(store.playbooks for store in stores)]
    for kept in every:
        [found] = await Playbook("shop", store=kept, embedder=None).strategies()
        assert (found.helpful_count, found.state) == (writers * count, StrategyState.ACTIVE)
        assert len(await kept.history("shop", limit=100)) == writers * count
    for store in stores:
        await store.close()
