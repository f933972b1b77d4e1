"""What is measured: the workloads, who takes part, and the targets. Plain data; needs only the standard library.

A workload is what one contender does in one process; a scenario is one workload or two that are compared; a target
is a bound on a ratio of figures.
"""

from dataclasses import dataclass, replace
from typing import Literal

Contender = Literal[
    "floor", "journeyman", "journeyman_sqlite", "pydantic_ai", "openai_agents", "agent_framework", "langgraph"
]
PEERS: tuple[Contender, ...] = ("agent_framework", "langgraph", "openai_agents", "pydantic_ai")
BOTH: tuple[Contender, ...] = ("floor", "journeyman")
DURABLE: tuple[Contender, ...] = ("floor", "journeyman_sqlite")
ALIKE: tuple[Contender, ...] = (*BOTH, *PEERS)
"""Who keeps nothing."""
EVERYONE: tuple[Contender, ...] = (*BOTH, "journeyman_sqlite", *PEERS)

PEER_SHARE = 10
"""Peers do a tenth of the runs, since each run costs them more than ten times as much."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """`runs` runs of `turns` turns with `width` calls of `tool` each, `at_once` of them at the same time."""

    runs: int
    turns: int = 10
    width: int = 1
    at_once: int = 1
    tool: Literal["add", "nap", "nap_sync", "hang"] = "add"
    tools_offered: int = 3
    windows: tuple[int, ...] = ()
    """Turns around which the CPU time of single turns is taken, from marks that the tool itself leaves."""
    patience: float | None = None
    """How many seconds a run is waited for; without it, to its end."""

    def script(self) -> str:
        return f"script: {self.turns} turns of {self.width} {self.tool}"

    def with_runs(self, runs: int) -> "Workload":
        """The same with another number of runs, but no fewer than go at once."""
        return replace(self, runs=max(runs, self.at_once))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    name: str
    title: str
    workloads: dict[str, Workload]
    contenders: tuple[Contender, ...] = ALIKE
    once: bool = False
    """Measured in the first repetition alone: what comes of it does not depend on how fast the machine is."""


SCENARIOS = (
    Scenario(
        name="sequential",
        title="10-step runs, one after another",
        workloads={"steps": Workload(runs=120)},
    ),
    Scenario(
        name="concurrent",
        title="10-step runs, 20 at once",
        workloads={"steps": Workload(runs=120, at_once=20)},
    ),
    Scenario(
        name="durable",
        title="10-step runs with every fact in a SQLite file",
        workloads={"steps": Workload(runs=120)},
        contenders=DURABLE,
    ),
    Scenario(
        name="growth",
        title="one long run, around step 10 and around step 200",
        workloads={"steps": Workload(runs=15, turns=206, windows=(10, 200))},
    ),
    Scenario(
        name="tools",
        title="10-step runs with 10, 200 and 500 tools",
        workloads={str(count): Workload(runs=60, tools_offered=count) for count in (10, 200, 500)},
    ),
    Scenario(
        name="throughput",
        title="100 runs of 5 steps at once",
        workloads={"runs": Workload(runs=400, turns=5, at_once=100)},
    ),
    Scenario(
        name="parallel_async",
        title="ten 50 ms async tools in one turn, beside one",
        workloads={"1": Workload(runs=6, turns=1, tool="nap"), "10": Workload(runs=6, turns=1, width=10, tool="nap")},
    ),
    Scenario(
        name="parallel_sync",
        title="ten 50 ms blocking tools in one turn, beside one",
        workloads={
            "1": Workload(runs=6, turns=1, tool="nap_sync"),
            "10": Workload(runs=6, turns=1, width=10, tool="nap_sync"),
        },
    ),
    Scenario(
        name="hang",
        title="a tool that never returns, called once, with everybody's own settings",
        workloads={"run": Workload(runs=1, turns=1, tool="hang", patience=45)},
        once=True,
    ),
)

HALF_WINDOW = 5
"""A window around turn t covers the turns from t − 5 to t + 5."""
