"""The grounding benchmark on a few of its conversations, and on runs that are made up here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.grounding.measure import alarms, caught, judged
from benchmarks.grounding.workloads import Shop, bfcl, tau, workbench


def test_ground_truth_calls_raise_hardly_any_false_alarm() -> None:
    found = alarms(bfcl(first=60))
    assert found.calls > 300
    assert found.false.rate <= 0.01, found.examples


def run(*calls: tuple[str, dict[str, Any], Any], right: bool) -> str:
    made = [
        {"tool": tool, "arguments": arguments, "result": result, "effect": tool == "email_send"}
        for tool, arguments, result in calls
    ]
    flags = {"ended_by_itself": True, "changed_state": True, "ok": right}
    return json.dumps({"template": str(calls), "request": "Write to Nia", "calls": made, **flags})


LOOKED_UP = ("directory_find", {"name": "Nia"}, ["nia.johnson@atlas.com"])
INVENTED = ("email_send", {"to": "nia@example.com"}, "Email sent successfully.")
RIGHT = ("email_send", {"to": "nia.johnson@atlas.com"}, "Email sent successfully.")


def test_runs_that_invent_are_caught_and_judged(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join([run(LOOKED_UP, RIGHT, right=True), run(INVENTED, right=False)]))
    runs = workbench(path)
    assert alarms([item for item in runs if item.right]).flagged == 0
    assert (caught(runs).part, caught(runs).of) == (1, 1)
    assert (judged(runs).precision.rate, judged(runs).recall.rate, judged(runs).naive.rate) == (1.0, 1.0, 0.5)


def test_the_lookups_of_a_shop_ground_its_calls(tmp_path: Path) -> None:
    (tmp_path / "users.json").write_text(json.dumps({"ada_1": {"orders": ["#W1234567"]}}))
    item = {"product_id": "8310926033", "item_id": "6469567736"}
    (tmp_path / "orders.json").write_text(json.dumps({"#W1234567": {"order_id": "#W1234567", "items": [item]}}))
    (tmp_path / "products.json").write_text(json.dumps({"8310926033": {"variants": {"1111222233": {}}}}))
    calls = [{"name": "exchange", "kwargs": {"order_id": "#W1234567", "new_item_ids": ["1111222233", "9999888877"]}}]
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "t", "group": "ada_1", "task": "Exchange it", "calls": calls}))
    found = alarms(tau(tasks, Shop(tmp_path)))
    assert (found.calls, found.flagged) == (1, 1)
    assert "9999888877" in found.examples[0]
