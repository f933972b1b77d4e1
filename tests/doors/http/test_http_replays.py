"""The time machine over HTTP: replays of one's own runs, forks by their owner, differences."""

from __future__ import annotations

from pathlib import Path

from journeyman.replay.playing import play
from journeyman.replay.recording import Recording
from journeyman.replay.stage import Today
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import served
from tests.doors.http.test_http_rating import TOKENS, asked, client_of

MODEL = ScriptedModel([call("query_tasks"), say("No tasks."), say("You are welcome.")])


async def test_runs_are_replayed_forked_and_compared(tmp_path: Path) -> None:
    async with served(tmp_path, model=MODEL, tokens=TOKENS) as server, client_of(server, "ada") as ada:
        run_id = await asked(ada)
        same = await ada.post("/api/v1/runs/replay", json={"runs": [run_id]})
        assert (same.status_code, same.json()["counts"]["same"]) == (200, 1)
        stricter = {"policy": {"least_risks": {"query_tasks": "irreversible"}}}
        changed = await ada.post("/api/v1/runs/replay", json=stricter)
        assert [item["change"] for item in changed.json()["findings"]] == ["now_asked"]
        wrong = await ada.post("/api/v1/runs/replay", json={"policy": {"default_risk": "none"}})
        assert (wrong.status_code, "default_risk" in wrong.text) == (422, True)
        forked = await ada.post(f"/api/v1/runs/{run_id}/fork", json={"at": 3, "say": "Thanks"})
        assert (forked.status_code, forked.json()["id"] != run_id) == (200, True)
        told = await ada.get(f"/api/v1/runs/{run_id}/diff", params={"other": run_id})
        assert (told.status_code, told.json()["first"]) == (200, None)
        assert (await ada.post(f"/api/v1/runs/{run_id}/fork", json={"at": 9})).status_code == 422
        assert (await ada.post(f"/api/v1/runs/{run_id}/fork", json={"at": 1, "model": "other"})).status_code == 403


async def test_a_step_is_shown_as_the_model_saw_it_and_a_run_becomes_a_test(tmp_path: Path) -> None:
    async with served(tmp_path, model=MODEL, tokens=TOKENS) as server, client_of(server, "ada") as ada:
        run_id = await asked(ada)
        second = (await ada.get(f"/api/v1/runs/{run_id}/steps/2")).json()
        assert [item["role"] for item in second["messages"]] == ["system", "user", "assistant", "function"]
        assert (second["text"], second["steps"], second["calls"]) == ("No tasks.", 2, [])
        [decided] = (await ada.get(f"/api/v1/runs/{run_id}/steps/1")).json()["calls"]
        assert (decided["tool_name"], decided["then"], decided["today"]) == ("query_tasks", "free", "free")
        assert (await ada.get(f"/api/v1/runs/{run_id}/steps/3")).status_code == 404
        made = (await ada.get(f"/api/v1/runs/{run_id}/test")).json()
        assert "recorded_run" in made["test"]
        played = await play(Recording.read(made["recording"]), Today())
        assert (played.calls, played.asked, played.problems) == (["query_tasks"], [], [])
        async with client_of(server, "bob") as bob:
            for path in ("steps/1", "test"):
                assert (await bob.get(f"/api/v1/runs/{run_id}/{path}")).status_code == 404


async def test_others_see_and_fork_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, model=MODEL, tokens=TOKENS) as server:
        async with client_of(server, "ada") as ada:
            run_id = await asked(ada)
        async with client_of(server, "bob") as bob:
            assert (await bob.post("/api/v1/runs/replay", json={})).json()["counts"]["runs"] == 0
            assert (await bob.post("/api/v1/runs/replay", json={"runs": [run_id]})).status_code == 404
            assert (await bob.post(f"/api/v1/runs/{run_id}/fork", json={"at": 1})).status_code == 404
            assert (await bob.get(f"/api/v1/runs/{run_id}/diff", params={"other": run_id})).status_code == 404
        async with client_of(server, "reader") as reader:
            assert (await reader.post("/api/v1/runs/replay", json={})).json()["counts"]["runs"] == 1
            assert (await reader.post(f"/api/v1/runs/{run_id}/fork", json={"at": 1})).status_code == 403
