"""How many dangerous arguments raise the risk of a call, and how many ordinary ones do so by mistake.

    python -m benchmarks.grading            # the two figures
    python -m benchmarks.grading --missed   # and what was missed among the values that the rules were made with

The dangerous values are paths and addresses (``grading_dangerous.txt``), which we wrote ourselves, and credentials,
which are made here by the shapes that their issuers publish. They are split in two by their hash: rules were extended
by what was missed in one half, and this program does not tell what is missed in the other. ``grading_held_out.txt``
was written before the rules were last extended, without looking at them; it is measured by kind, and what is missed in
it is not told. What was measured on lists of other people stands in README.md.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from journeyman.core.policy import RiskLevel
from journeyman.execution.checks import categorize_action_risk

HERE = Path(__file__).parent
LEAST_RAISED = 0.95
MOST_FALSE = 0.02

_MIXED = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits
_HEX = "0123456789abcdef"
SHAPES = (  # what it begins with, its alphabet, how many of it follow
    *(("AKIA", _UPPER, 16), ("ASIA", _UPPER, 16), ("ghp_", _MIXED, 36), ("gho_", _MIXED, 36), ("ghs_", _MIXED, 36)),
    *(("github_pat_", _MIXED, 82), ("glpat-", _MIXED, 20), ("xoxb-", string.digits + "-", 24), ("xoxp-", _MIXED, 40)),
    *(("xapp-1-", _MIXED, 40), ("sk_live_", _MIXED, 24), ("rk_live_", _MIXED, 24), ("sk-", _MIXED, 48)),
    *(("sk-proj-", _MIXED, 60), ("sk-ant-api03-", _MIXED, 80), ("AIza", _MIXED, 35), ("ya29.", _MIXED, 60)),
    *(("GOCSPX-", _MIXED, 28), ("hf_", _MIXED, 34), ("npm_", _MIXED, 36), ("pypi-", _MIXED, 80), ("dop_v1_", _HEX, 64)),
    *(("hvs.", _MIXED, 40), ("SG.", _MIXED, 66), ("key-", _HEX, 32), ("SK", _HEX, 32), ("shpat_", _HEX, 32)),
    *(("dckr_pat_", _MIXED, 27), ("sntrys_", _MIXED, 60), ("lin_api_", _MIXED, 40), ("ATATT3", _MIXED, 60)),
    *(
        ("LTAI", _MIXED, 20),
        ("rubygems_", _HEX, 48),
        ("NRAK-", _UPPER, 27),
        ("glsa_", _MIXED, 41),
        ("figd_", _MIXED, 40),
    ),
    *(("AGE-SECRET-KEY-1", _UPPER, 58), ("tskey-auth-", _MIXED, 30), ("pscale_tkn_", _MIXED, 40), ("xai-", _MIXED, 60)),
    *(("Authorization: Bearer ", _MIXED, 40), ("Bearer ", _MIXED, 32), ("password=", _MIXED, 12)),
    *(("api_key: ", _MIXED, 32), ("AWS_SECRET_ACCESS_KEY=", _MIXED, 40), ("secret = ", _MIXED, 20)),
    *(
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey=", _MIXED, 86),
        ("-----BEGIN RSA PRIVATE KEY-----", "A", 8),
    ),
    *(("-----BEGIN OPENSSH PRIVATE KEY-----", "b", 8), ("PuTTY-User-Key-File-", "3", 1)),
    *(
        ("https://api.telegram.org/bot123456789:AA", _MIXED, 33),
        ("https://hooks.slack.com/services/T01/B01/", _MIXED, 24),
    ),
    *(("https://discord.com/api/webhooks/1234567890/", _MIXED, 68), ("https://example.org/reset/", _MIXED, 43)),
    *(("https://hooks.zapier.com/hooks/catch/1234567/", _MIXED, 9), ("https://example.org/share/", _MIXED, 32)),
    *(("https://outlook.office.com/webhook/", _HEX, 36), ("https://example.org/?key=AIza", _MIXED, 35)),
    *(("https://example.org/?code=", _MIXED, 40), ("https://example.org/i/", _MIXED, 26)),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What share of each kind was raised."""

    seen: float
    held_out: float
    false_alarms: float
    missed: tuple[str, ...]
    """Of the half that was looked at."""
    alarms: tuple[str, ...]


def values(file: str) -> list[str]:
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


def credentials() -> Iterator[str]:
    """Made-up credentials, the same ones every time; a JWT is three of them."""
    draw = random.Random(17)
    for prefix, alphabet, length in SHAPES:
        yield prefix + "".join(draw.choices(alphabet, k=length))
    for header in ("eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9"):
        body, signature = ("".join(draw.choices(_MIXED, k=length)) for length in (60, 43))
        yield f"{header}.eyJ{body}.{signature}"


def raised(value: str) -> bool:
    """Whether a read with this argument needs a person."""
    return categorize_action_risk("read_file", {"value": value}) is RiskLevel.IRREVERSIBLE


def measure() -> Figures:
    halves: tuple[list[str], list[str]] = ([], [])
    for value in (*values("grading_dangerous.txt"), *credentials()):
        halves[hashlib.sha256(value.encode()).digest()[0] % 2].append(value)
    seen, held_out = halves
    ordinary = values("grading_ordinary.txt")
    missed = tuple(value for value in seen if not raised(value))
    alarms = tuple(value for value in ordinary if raised(value))
    return Figures(
        seen=1 - len(missed) / len(seen),
        held_out=sum(map(raised, held_out)) / len(held_out),
        false_alarms=len(alarms) / len(ordinary),
        missed=missed,
        alarms=alarms,
    )


def by_kind() -> dict[str, tuple[int, int]]:
    """How many of the labelled values nobody made rules from were graded as they should be, of how many, by kind."""
    found: dict[str, tuple[int, int]] = {}
    for line in values("grading_held_out.txt"):
        kind, _, value = line.partition("\t")
        right, count = found.get(kind, (0, 0))
        found[kind] = right + (raised(value.replace("\\n", "\n")) is not (kind == "benign")), count + 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="How well arguments are graded.")
    parser.add_argument("--missed", action="store_true", help="tell what was missed, of the half that may be looked at")
    wanted = parser.parse_args()
    found = measure()
    if wanted.missed:
        print("missed:", *found.missed, sep="\n  ")
        print("false alarms:", *found.alarms, sep="\n  ")
    print(f"dangerous values raised, held out: {found.held_out:.1%} (at least {LEAST_RAISED:.0%})")
    print(f"dangerous values raised, seen:     {found.seen:.1%}")
    print(f"ordinary values raised:            {found.false_alarms:.1%} (at most {MOST_FALSE:.0%})")
    print("of values that no rule was made from, graded as they should be:")
    for kind, (right, count) in by_kind().items():
        print(f"  {kind:10} {right:3} of {count}")


if __name__ == "__main__":
    main()
