"""The workloads: what was said, which calls were made then, and what they returned. Each in one form, `Episode`.

BFCL's multi-turn ground truth is played on its own classes. tau retail's tasks name only the calls with effects, so the
lookups that its policy demands before them (who is this, their orders, the products in question) are made on its own
database. The WorkBench runs carry their results.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bfcl import corpus
from journeyman import tool
from journeyman.core.specification import ToolSpecification


@dataclass(frozen=True)
class Call:
    tool: ToolSpecification
    arguments: dict[str, Any]
    result: str
    counts: bool = True
    """Whether it is judged; a lookup that was added here is only there for its result."""
    effect: bool = False
    failed: bool = False
    """Whether the call itself was wrong: its tool says so."""
    cut: bool = False
    """Whether the data holds only the beginning of the result."""
    error: bool = False
    """Whether it was no call of any tool that there is."""


@dataclass(frozen=True)
class Episode:
    id: str
    group: str
    """Episodes of one group leak into each other: they are in the same half."""
    turns: tuple[tuple[str, tuple[Call, ...]], ...]
    """What the user said, and the calls that followed."""
    ended: bool = True
    changed: bool = False
    right: bool = True
    hidden: str = ""
    """What is stored in the environment when the episode begins, in lower case, whether or not anybody says it."""

    @property
    def tuned(self) -> bool:
        """Whether it is in the half that the rules were made on; the other half is reported."""
        return hashlib.sha256(self.group.encode()).digest()[0] % 2 == 0

    @property
    def calls(self) -> Iterator[Call]:
        return (call for _, calls in self.turns for call in calls)


# --- BFCL


def bfcl(first: int | None = None) -> list[Episode]:
    """The base conversations: the other categories are near copies of them."""
    corpus.install()
    data, name = corpus.HOME / "bfcl_eval" / "data", "BFCL_v4_multi_turn_base.json"
    asked = {entry["id"]: entry["question"] for entry in _lines(data / name)}
    truths = {truth["id"]: truth["ground_truth"] for truth in _lines(data / "possible_answer" / name)}
    scenarios = corpus.load(["base"])[:first]
    objects = corpus.instances(sorted({name for scenario in scenarios for name in scenario.classes}))
    methods = {name: call for actor in objects.values() for name, call in corpus.methods(actor).items()}
    tools = {name: tool(method).specification for name, method in methods.items()}
    found = []
    for scenario in scenarios:
        corpus.set_stage(objects, scenario)
        turns = []
        for question, texts in zip(asked[scenario.id], truths[scenario.id], strict=True):
            calls = []
            for text in texts:
                call = corpus.parse(text)
                arguments = corpus.arguments(methods[call.tool], call)
                result = json.dumps(corpus.as_json(methods[call.tool](**arguments)))
                calls.append(Call(tools[call.tool], corpus.as_json(arguments), result))
            turns.append(("\n".join(message["content"] for message in question), tuple(calls)))
        hidden = json.dumps(scenario.initial).lower()
        found.append(Episode(scenario.id, scenario.id, tuple(turns), hidden=hidden))
    return found


# --- tau retail


@dataclass
class Shop:
    """tau retail's database, as far as its lookups read it."""

    folder: Path
    users: dict[str, Any] = field(init=False)
    orders: dict[str, Any] = field(init=False)
    products: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("users", "orders", "products"):
            setattr(self, name, json.loads((self.folder / f"{name}.json").read_text()))

    def lookups(self, user: str) -> Iterator[Call]:
        yield _lookup("find_user_id", user)
        yield _lookup("get_user_details", self.users[user])
        orders = [self.orders[order] for order in self.users[user]["orders"]]
        for order in orders:
            yield _lookup("get_order_details", order)
        for product in dict.fromkeys(item["product_id"] for order in orders for item in order["items"]):
            yield _lookup("get_product_details", self.products[product])


def tau(path: Path, shop: Shop) -> list[Episode]:
    found = []
    for entry in _lines(path):
        calls = [Call(_named(call["name"]), call["kwargs"], "{}", effect=True) for call in entry["calls"]]
        turns = ((entry["task"], (*shop.lookups(entry["group"]), *calls)),)
        found.append(Episode(entry["id"], entry["group"], turns))
    return found


def _lookup(name: str, result: Any) -> Call:
    return Call(_named(name), {}, json.dumps(result), counts=False)


# --- WorkBench


def workbench(path: Path) -> list[Episode]:
    found = []
    for at, run in enumerate(_lines(path)):
        calls = tuple(
            Call(
                _named(call["tool"] or "unnamed"),
                call["arguments"],
                call["result"] if isinstance(call["result"], str) else json.dumps(call["result"]),
                effect=call["effect"],
                failed=_refused(call["result"]),
                cut=isinstance(call["result"], str) and call["result"].startswith(("[", "{")),
                error=call["tool"] is None,
            )
            for call in run["calls"]
        )
        found.append(
            Episode(
                f"workbench_{at}",
                run["template"],
                ((run["request"], calls),),
                ended=run["ended_by_itself"],
                changed=run["changed_state"],
                right=run["ok"],
            )
        )
    return found


def _refused(result: Any) -> bool:
    """Whether one of WorkBench's tools says that there is no such thing."""
    return isinstance(result, str) and any(words in result for words in ("not found", "not valid", "Error"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


_SPECIFICATIONS: dict[str, ToolSpecification] = {}


def _named(name: str) -> ToolSpecification:
    if name not in _SPECIFICATIONS:
        _SPECIFICATIONS[name] = ToolSpecification(name=name, description=name)
    return _SPECIFICATIONS[name]


def half(episodes: Iterable[Episode], *, tuned: bool) -> list[Episode]:
    return [episode for episode in episodes if episode.tuned is tuned]
