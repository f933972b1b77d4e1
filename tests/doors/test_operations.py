"""One table of operations: what it says of each, how its lists go on, and that doors do nothing beside it."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, create_model

from journeyman.app.operations.table import Page, table
from journeyman.core.data import Moment
from journeyman.doors.http.operated import ROUTES
from tests.doors.http.serving import served
from tests.stores.samples import order, question

SOURCE = Path(__file__).parents[2] / "src" / "journeyman"
LISTS = ("runs", "approvals", "sessions", "memory/documents", "tasks", "gaps")


def test_every_operation_says_what_it_takes_gives_and_needs() -> None:
    for name, item in table().items():
        assert re.fullmatch(r"[a-z]+\.[a-z]+", name)
        assert re.fullmatch(r"[A-Z].*[^.]", item.summary), name
        values: dict[str, Any] = {value.name: (value.kind, value.info) for value in item.inputs}
        assert create_model(name, **values).model_json_schema(mode="validation")["title"] == name
        if item.permission is not None:
            assert f"'{item.permission}'" in item.description
        if isinstance(item.output, type) and issubclass(item.output, Page):
            assert {"limit", "after"} <= {value.name for value in item.inputs}, name
        elif name.endswith((".list", ".search", ".rows", ".history", ".versions", ".messages")):
            pytest.fail(f"{name} is a list, and cannot go on where it stopped")


def test_every_route_is_one_of_the_table() -> None:
    known = {id(item) for item in table().values()}
    assert all(id(operation) in known for _, _, operation, *_ in ROUTES)


def test_the_page_of_operations_is_the_table() -> None:
    from scripts.write_operations import PAGE, page

    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run 'python -m scripts.write_operations'"


REACHING = {"http": 1, "cli": 0, "slack": 11, "mcp": 0}
"""How often each door reads or writes a store itself, past the desk. It only goes down."""


@pytest.mark.parametrize("door", REACHING)
def test_doors_reach_into_the_store_no_more_often_than_they_did(door: str) -> None:
    texts = (path.read_text(encoding="utf-8") for path in (SOURCE / "doors" / door).rglob("*.py"))
    assert sum(len(re.findall(r"(?:app|service)\.store\.\w", text)) for text in texts) <= REACHING[door]


def test_the_app_hands_no_more_of_other_rooms_to_doors() -> None:
    names = (SOURCE / "app" / "__init__.py").read_text(encoding="utf-8")
    assert len(re.findall(r"^    from journeyman\.(?!app\b)", names, re.MULTILINE)) <= 38, "doors use app and core"


@pytest.mark.parametrize("path", sorted((SOURCE / "doors" / "http").glob("*.py")), ids=lambda path: path.stem)
def test_the_http_door_reads_no_list_of_a_store(path: Path) -> None:
    """What a list holds, and for whom, is decided once: by the operation."""
    read = {"list", "count", "demand", "query"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in read:
            inner = node.value
            assert not (isinstance(inner, ast.Attribute) and ast.unparse(inner.value).endswith(".store")), path


async def fill(server: Any, client: Any, count: int) -> None:
    store = server.service.store
    for number in range(count):
        await store.runs.create(order(f"run-{number}", session=f"s-{number}", at=number, principal="local"))
        await store.approvals.ask(
            question(f"a-{number}", run_id=f"run-{number}", principal="local", at=number, expires_at=9e9)
        )
    words = ("fly", "swim", "sing", "dance", "juggle")[:count]
    await asyncio.gather(
        *(client.post("/api/v1/tasks", json={"title": f"Task {number}"}) for number in range(count)),
        *(client.post("/api/v1/memory/documents", json={"text": f"Note {number}"}) for number in range(count)),
        *(server.service.app.gaps.detect(f"Please {word} over the moon for me") for word in words),
    )


async def test_lists_go_on_after_what_was_seen_and_say_how_many_there_are(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        await fill(server, client, 5)
        for name in LISTS:
            key = name.rpartition("/")[2]
            whole = (await client.get(f"/api/v1/{name}")).json()
            mark = "key" if key == "gaps" else "id"
            expected = [item[mark] for item in whole[key]]
            assert (whole["total"], whole["next_after"]) == (len(expected), None), name
            assert len(expected) >= 3, name
            seen: list[str] = []
            after: dict[str, str] = {}
            while True:
                page = (await client.get(f"/api/v1/{name}", params={"limit": 2, **after})).json()
                seen += [item[mark] for item in page[key]]
                assert page["total"] == len(expected), name
                if page["next_after"] is None:
                    break
                after = {"after": page["next_after"]}
            assert seen == expected, name


async def test_a_run_that_is_new_meanwhile_moves_no_page(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        await fill(server, client, 4)
        first = (await client.get("/api/v1/runs", params={"limit": 2})).json()
        await server.service.store.runs.create(order("run-new", at=99, principal="local"))
        rest = (await client.get("/api/v1/runs", params={"limit": 2, "after": first["next_after"]})).json()
        assert [run["id"] for run in first["runs"] + rest["runs"]] == ["run-3", "run-2", "run-1", "run-0"]


async def test_times_in_answers_are_iso_8601_and_are_taken_so(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        await fill(server, client, 1)
        [run] = (await client.get("/api/v1/runs")).json()["runs"]
        assert run["created_at"] == "1970-01-01T00:00:00Z"
        [row] = (await client.get("/api/v1/audit", params={"kind": "memory_added"})).json()["rows"]
        assert datetime.fromisoformat(row["time"]).tzinfo is not None
        [document] = (await client.get("/api/v1/memory/documents")).json()["documents"]
        since = {"since": document["created_at"]}
        assert (await client.get("/api/v1/memory/documents", params=since)).json()["total"] == 1


@pytest.mark.parametrize("seconds", [1896415327.5077069, 1793207715.7538059, 1871255427.7826009, 0.0, 1e-7])
def test_a_time_that_was_told_is_never_later_than_the_one_that_is_kept(seconds: float) -> None:
    adapter = TypeAdapter(Moment)
    again = adapter.validate_python(json.loads(adapter.dump_json(seconds)))
    assert seconds - 3e-6 < again <= seconds


def test_a_time_is_read_in_either_form_and_kept_as_seconds() -> None:
    adapter = TypeAdapter(Moment)
    assert adapter.validate_python("1970-01-01T00:01:00Z") == adapter.validate_python("60") == 60.0
    assert adapter.dump_python(60.0) == 60.0
    assert json.loads(adapter.dump_json(60.0)) == "1970-01-01T00:01:00Z"
