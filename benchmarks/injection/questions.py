"""How often a person would be asked about calls that are right: ground truth and right runs, judged by the flow alone.

BFCL is installed by the benchmark. The other workloads are files that it is told of; what is not there is left out.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.grounding.measure import Said
from benchmarks.grounding.workloads import Call, Episode, Shop, bfcl, half, tau, workbench
from journeyman.core.calls import CallStatus, DataLabel, ToolCallRecord
from journeyman.core.data import moment, unchecked
from journeyman.core.runs import Message, ReasoningStep, Role
from journeyman.core.words import words
from journeyman.provenance.flow import Flow, Verdict, default_reads, label_for
from journeyman.provenance.ledger import Ledger, Model, Utterance
from journeyman.provenance.said import lists

MOST = 0.02
"""The share of calls that may be asked about."""


def reads(call: Call) -> bool:
    """By what the data says of its effect, or by its name where that says nothing."""
    return not call.effect and not lists.reading.isdisjoint(words(call.tool.name))


def label(call: Call, *, everything: bool) -> DataLabel | None:
    if everything:
        return label_for(call.tool.name, ("untrusted",)) if reads(call) else None
    return label_for(call.tool.name, default_reads(call.tool.name, elsewhere=False, reads_only=reads(call)))


def judged(episode: Episode, *, everything: bool) -> Iterator[tuple[str, Call, Verdict | None]]:
    """Each call with what the person said last and the verdict. ``everything``: whatever is read is untrusted."""
    said = Said()
    ledger = Ledger(said)
    flow, at = Flow(ledger), 0
    for request, calls in episode.turns:
        said.task_at = len(said.messages)
        said.messages.append(Message.user(request))
        for call in calls:
            at += 1
            ledger.trace(call.tool, call.arguments)
            yield request, call, flow.judge(call.tool, call.arguments, reads_only=reads(call), sends=None)
            marked = label(call, everything=everything)
            record = unchecked(
                ToolCallRecord,
                {
                    "execution_id": f"call_{at}",
                    "call_id": f"call_{at}",
                    "tool_name": call.tool.name,
                    "arguments": call.arguments,
                    "status": CallStatus.SUCCESS,
                    "start_time": moment(0),
                    "end_time": moment(0),
                    "result": Utterance(Model(), call.result).data,
                    "attempts": 1,
                    "label": marked,
                },
            )
            said.messages.append(
                unchecked(
                    Message,
                    {
                        "role": Role.FUNCTION,
                        "content": call.result,
                        "name": call.tool.name,
                        "call_id": f"call_{at}",
                        "label": marked,
                    },
                )
            )
            said.steps.append(
                unchecked(
                    ReasoningStep,
                    {
                        "iteration": at,
                        "thought": "…",
                        "action": "call_tool",
                        "calls": (record,),
                        "timestamp": 0.0,
                        "duration_ms": 0.0,
                    },
                )
            )


def asked(episodes: list[Episode], *, everything: bool) -> tuple[int, int, list[str]]:
    """The calls of some episodes that are right, and those of them that would be asked about, each with why.

    Of a call after a result that the data holds only in part, nobody can tell: these are counted by themselves.
    """
    calls, untold, found = 0, 0, list[str]()
    for episode in episodes:
        cut = not episode.right
        for request, call, verdict in judged(episode, everything=everything):
            counts = episode.right and call.counts and not call.failed and not call.error
            calls += counts and not cut
            untold += counts and cut
            if verdict is not None and verdict.doubts and counts and not cut:
                found.append(f"{episode.id}: {call.tool.name}: {verdict.reason} | {request}")
            cut = cut or call.cut
    return calls, untold, found


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.injection.questions", description=__doc__)
    for name in ("workbench", "tau", "tau-data"):
        variable = f"JOURNEYMAN_{name.replace('-', '_').upper()}"
        given = os.environ.get(variable)
        default = None if given is None else Path(given)
        parser.add_argument(f"--{name}", type=Path, metavar="PATH", default=default, help=f"a file (or {variable})")
    parser.add_argument("--show", action="store_true", help="print each question of the half that rules are made on")
    return parser.parse_args()


def main() -> int:
    chosen, sets = options(), {"BFCL multi-turn": bfcl()}
    if chosen.tau and chosen.tau_data:
        sets["tau retail"] = tau(chosen.tau, Shop(chosen.tau_data))
    if chosen.workbench:
        sets["WorkBench"] = workbench(chosen.workbench)
    worst = 0.0
    for name, episodes in sets.items():
        for everything in (False, True):
            calls, untold, found = asked(half(episodes, tuned=False), everything=everything)
            tuned_calls, _, tuned = asked(half(episodes, tuned=True), everything=everything)
            labels = "whatever is read is untrusted" if everything else "labels by default"
            rate = len(found) / calls if calls else 0.0
            worst = worst if everything else max(worst, rate)
            print(f"{name}, {labels}: {len(found)} of {calls} calls ({rate:.1%}); {untold} more come after a result")
            print(f"  that is not kept whole; on the half that rules were made on {len(tuned)} of {tuned_calls}")
            if chosen.show:
                print("\n".join(f"  {line}" for line in tuned))
    print(f"target: with the labels that tools have by default, at most {MOST:.0%} of the calls")
    return 0 if worst <= MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
