"""Every rule of the adapter switched off once, over the tuning halves of all kinds.

A rule stays if all kinds together are better with it and none is worse by more than chance.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from benchmarks.embedded.__main__ import measure
from benchmarks.embedded.kinds import KINDS
from journeyman.models import arguments
from journeyman.models.arguments import as_iso, is_date
from journeyman.models.embedded import model, tools

Said = Mapping[str, Any]


def _called(said: Said, text: str) -> Sequence[Any]:
    negated = (said.get("validation") or {}).get("negation")
    return () if negated else said.get("function_calls") or ()


def _negated_too(said: Said, text: str) -> Sequence[Any]:
    return said.get("function_calls") or said.get("suppressed_calls") or ()


RULES: dict[str, Callable[[], Any]] = {
    "only the nearest tools are read": lambda: patch.object(model, "NEAREST", model.MOST_TOOLS),
    "in doubt each tool is weighed alone": lambda: patch.object(model, "SURE", 0.0),
    "a request worded like an example is an order": lambda: patch.object(
        model, "ordered_form_of", lambda *_, **__: None
    ),
    "a form has what the request can speak of": lambda: patch.object(
        tools, "relevant", lambda tool, schema, *_: schema
    ),
    "a tool has the verbs of its examples": lambda: patch.object(tools, "_verbs", lambda tool: set()),
    "days are copied, then worked out": lambda: patch.object(tools, "_copied_days", lambda schema: schema),
    "withheld calls count too": lambda: patch.object(model, "_calls", _called),
    "the request settles days": lambda: patch.object(tools, "dates_in_request", lambda *_: None),
    "the request settles addresses and values": lambda: patch.object(
        arguments, "_grounded", lambda value, schema, _, today: as_iso(value, today) if is_date(schema) else value
    ),
    "what is negated is not called": lambda: patch.object(model, "_calls", _negated_too),
    "a call must be likely to be right": lambda: patch.object(model, "speaks_for", lambda _: 1.0),
    "what no argument took up is asked for": lambda: patch.object(model, "left_over", lambda *_: set()),
    "small talk is answered": lambda: patch.object(model, "small_talk", lambda *_: None),
}


@contextmanager
def without(rule: str | None) -> Iterator[None]:
    if rule is None:
        yield
        return
    with RULES[rule]():
        yield


def scores(rule: str | None, kinds: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By kind: how many are right, how many there are."""
    with without(rule):  # the processes that measure are forks of this one
        rows = measure(["embedded"], kinds, "tuning")
    groups = {
        **{kind: [row for row in rows if row["kind"] == kind] for kind in kinds},
        "all": rows,
        "out of scope": [row for row in rows if row["outside"]],
    }
    return {name: (sum(row["right"] for row in group), len(group)) for name, group in groups.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedded.ablation", description=__doc__)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS, metavar="KIND")
    parser.add_argument("--rule", nargs="+", choices=RULES, default=list(RULES), metavar="RULE")
    chosen = parser.parse_args()
    whole = scores(None, chosen.kind)
    print("| without | " + " | ".join(f"{name} ({count})" for name, (_, count) in whole.items()) + " |")
    print("|---|" + "---|" * len(whole))
    print("| nothing | " + " | ".join(str(right) for right, _ in whole.values()) + " |", flush=True)
    for rule in chosen.rule:
        part = scores(rule, chosen.kind)
        cells = (f"{part[name][0] - right:+d}" for name, (right, _) in whole.items())
        print(f"| {rule} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
