"""What reading a gram document costs beside the bare parser, and how that grows with the document.

One document of about 350 KB, of agents with their tools; CPU time, the median over interleaved rounds. `parse` gives
plain data with positions; the bare parser gives its syntax tree. Run with `-m benchmarks.gram`.
"""

import argparse
import json
import random
from collections.abc import Callable
from statistics import median
from time import process_time

import tree_sitter
import tree_sitter_gram

from journeyman import gram

SIZE = 350_000
ROUNDS = 21
MOST_RATIO = 6.0
MOST_GROWTH = 2.3

AGENT = """\
// agent number {n}
[agent_{n}:Agent {{
  description: "Answers questions about orders",
  model: "openai:gpt-5-mini",
  instruction: "Look an order up before you say anything about it. Be brief, and never guess.",
  max_iterations: {limit}
}} |
  [lookup_order_{n}:Tool {{
    description: "Look up an order by its number. Use when the user names an order.",
    read_only: true,
    tags: ["orders", "read"]
  }} |
    (order_id::String {{description: "The order's number"}})==>(verbose::Boolean {{default: false}})==>(::Object)
  ],
  [cancel_order_{n}:Tool {{description: "Cancel an order", permissions: ["orders:write"], timeout_seconds: 10}} |
    (order_id::String)==>(reason::String {{default: "none"}})==>(days::Integer {{schema: json`{{"minimum": 1}}`}})
      ==>(::Null)
  ],
  shared_tool
]
"""


def document(size: int) -> str:
    """A document of about so many characters."""
    agents: list[str] = ['[shared_tool:Tool {description: "Say hello", typeSignature: "(name: Text) --> IO Text"}]\n']
    length = 0
    while length < size:
        agents.append(AGENT.format(n=len(agents), limit=len(agents) % 20 + 1))
        length += len(agents[-1])
    return "\n".join(agents)


def cpu_seconds(action: Callable[[], object]) -> float:
    start = process_time()
    action()
    return process_time() - start


def measure() -> list[dict[str, float]]:
    single, double = document(SIZE), document(2 * SIZE)
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_gram.language()))
    encoded = single.encode()
    actions: dict[str, Callable[[], object]] = {
        "bare parser": lambda: parser.parse(encoded),
        "parse": lambda: gram.parse(single),
        "parse, twice the size": lambda: gram.parse(double),
    }
    for action in actions.values():
        action()
    return [{name: cpu_seconds(actions[name]) for name in random.sample(list(actions), 3)} for _ in range(ROUNDS)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gram", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    chosen = parser.parse_args()
    rounds = measure()
    ratio = median(measured["parse"] / measured["bare parser"] for measured in rounds)
    growth = median(measured["parse, twice the size"] / measured["parse"] for measured in rounds)
    targets = {"ratio": MOST_RATIO, "growth": MOST_GROWTH}
    passed = ratio <= MOST_RATIO and growth <= MOST_GROWTH
    if chosen.json:
        figures = {"bytes": SIZE, "rounds": rounds, "ratio": ratio, "growth": growth, "targets": targets}
        print(json.dumps({**figures, "passed": passed}, indent=1))
    else:
        for name in sorted(rounds[0]):
            print(f"{name:24} {median(measured[name] for measured in rounds) * 1000:6.0f} ms CPU")
        verdicts = [("pass" if ratio <= MOST_RATIO else "FAIL"), ("pass" if growth <= MOST_GROWTH else "FAIL")]
        print(f"{verdicts[0]}  parse / bare parser: {ratio:.2f} (target ≤ {MOST_RATIO:g})")
        print(f"{verdicts[1]}  twice the size: {growth:.2f} × (target ≤ {MOST_GROWTH:g})")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
