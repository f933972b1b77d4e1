"""The corpus: scenarios, ground-truth calls and the Python classes behind them, as the `bfcl-eval` package has them.

Loading and parsing only; nothing here knows Journeyman. The package goes into a folder of its own (`.bench/bfcl`),
without its many dependencies: of those only mpmath is needed by the classes of the multi-turn part.
"""

import ast
import copy
import importlib
import inspect
import json
import numbers
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import packages

HOME = packages.HOME / "bfcl"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
CATEGORIES = ("base", "long_context", "miss_func", "miss_param")


@dataclass(frozen=True)
class GroundTruthCall:
    """One call as the corpus writes it, e.g. `cd(folder='document')` or `sort('report.pdf')`."""

    text: str
    tool: str
    positional: tuple[Any, ...]
    keywords: dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    id: str
    long_context: bool
    classes: tuple[str, ...]
    initial: dict[str, dict[str, Any]]
    calls: tuple[GroundTruthCall, ...]


def install() -> None:
    packages.install(HOME.name, REQUIREMENTS)


def parse(text: str) -> GroundTruthCall:
    """Read one call. Its arguments are literals, so nothing is evaluated."""
    node = ast.parse(text.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"{text!r} is not a call of a plain name")
    if any(keyword.arg is None for keyword in node.keywords):
        raise ValueError(f"{text!r} unpacks a mapping")
    return GroundTruthCall(
        text=text,
        tool=node.func.id,
        positional=tuple(ast.literal_eval(value) for value in node.args),
        keywords={str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords},
    )


def load(categories: Iterable[str] = CATEGORIES) -> list[Scenario]:
    """Every scenario with its calls, all turns in a row."""
    return [scenario for category in categories for scenario in _load_category(category)]


def _load_category(category: str) -> Iterable[Scenario]:
    data = HOME / "bfcl_eval" / "data"
    name = f"BFCL_v4_multi_turn_{category}.json"
    truths = {truth["id"]: truth["ground_truth"] for truth in _lines(data / "possible_answer" / name)}
    for entry in _lines(data / name):
        yield Scenario(
            id=entry["id"],
            long_context=category == "long_context",
            classes=tuple(entry["involved_classes"]),
            initial=entry["initial_config"],
            calls=tuple(parse(text) for turn in truths[entry["id"]] for text in turn),
        )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def instances(classes: Iterable[str]) -> dict[str, Any]:
    """One fresh object of each class, by the class's name."""
    if str(HOME) not in sys.path:
        sys.path.append(str(HOME))  # last: nothing of ours may be shadowed
    backend = importlib.import_module("bfcl_eval.constants.executable_backend_config")
    modules = backend.CLASS_FILE_PATH_MAPPING
    return {name: getattr(importlib.import_module(modules[name]), name)() for name in classes}


def set_stage(objects: dict[str, Any], scenario: Scenario) -> None:
    """Bring the scenario's objects, in place, into the state in which the scenario starts."""
    for name in scenario.classes:
        actor = objects[name]
        vars(actor).clear()
        type(actor).__init__(actor)
        if hasattr(actor, "_load_scenario"):  # mathematics has no state
            actor._load_scenario(copy.deepcopy(scenario.initial.get(name, {})), long_context=scenario.long_context)


def methods(actor: object) -> dict[str, Callable[..., Any]]:
    """The object's public methods: the corpus's tools."""
    return {name: method for name, method in inspect.getmembers(actor, inspect.ismethod) if not name.startswith("_")}


def arguments(method: Callable[..., Any], call: GroundTruthCall) -> dict[str, Any]:
    """The call's arguments by name, as a model would send them."""
    return dict(inspect.signature(method).bind(*call.positional, **call.keywords).arguments)


def state(actor: object) -> dict[str, Any]:
    """The object's public attributes: what the corpus itself compares to judge a run."""
    return {name: value for name, value in vars(actor).items() if not name.startswith("_")}


def as_json(value: Any) -> Any:
    """A value as it reads after a trip through JSON: numbers of other packages as numbers, the ellipsis as text."""
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, numbers.Real):
        return float(value)
    if value is Ellipsis:
        return "..."
    raise TypeError(f"{value!r} has no JSON form")
