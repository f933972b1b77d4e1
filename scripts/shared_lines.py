"""Looks for lines written twice where one idea should be written once: a rule kept in two copies holds in one of them.

``python -m scripts.shared_lines`` fails where two sides of a group in ``GROUPS`` share a run of six lines or more.
Lines are compared without indentation, comments and `await`; imports, empty lines and lone brackets do not count.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "src" / "journeyman"
RUN_LENGTH = 6


class Group(NamedTuple):
    """Sides that share no run of lines; of a single side, each file is a side of its own."""

    name: str
    sides: tuple[tuple[str, ...], ...]
    enforced: bool = True


LEASING = ("stores/database.py", "stores/runs.py", "stores/playbooks.py", "stores/processes.py", "app/owners.py")
GROUPS = (
    Group("command line and HTTP", (("doors/cli/**/*.py",), ("doors/http/**/*.py",))),
    Group("leases", (("**/*lease*.py", *LEASING),)),
    Group(
        "readers of origins",
        (
            ("provenance/**/*.py",),
            ("learning/**/*.py",),
            ("execution/*ground*.py",),
            ("agent/guide.py", "agent/undone.py"),
        ),
    ),
)


class Place(NamedTuple):
    file: str
    line: int


class Line(NamedTuple):
    number: int
    text: str


def lines_of(source: str) -> list[Line]:
    """The lines that say something, each without its indentation and comment, and alike whether it waits or not."""
    left_out = {
        number
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return [
        Line(number, re.sub(r"\b(await|async) ", "", line.strip()))
        for number, line in enumerate(lines, start=1)
        if number not in left_out and any(character.isalnum() for character in line)
    ]


def shared(package: Path, group: Group) -> Iterator[tuple[Place, Place, list[Line]]]:
    """Each longest run of lines in two sides of the group: where it begins, and what it says."""
    sides = [sorted({path for glob in side for path in package.glob(glob)}) for side in group.sides]
    if len(sides) == 1:
        sides = [[path] for path in sides[0]]
    texts = {path: lines_of(path.read_text(encoding="utf-8")) for side in sides for path in side}
    for one, other in itertools.combinations(sides, 2):
        for left, right in itertools.product(one, other):
            if left != right:
                for run, at, to in _runs(texts[left], texts[right]):
                    names = [str(path.relative_to(package)) for path in (left, right)]
                    yield Place(names[0], at), Place(names[1], to), run


def _runs(left: list[Line], right: list[Line]) -> Iterator[tuple[list[Line], int, int]]:
    where: defaultdict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(right):
        where[line.text].append(number)
    for start, line in enumerate(left):
        for at in where[line.text]:
            if start and at and left[start - 1].text == right[at - 1].text:
                continue  # a longer run begins before
            pairs = zip(left[start:], right[at:], strict=False)
            run = [one for one, other in itertools.takewhile(lambda pair: pair[0].text == pair[1].text, pairs)]
            if len(run) >= RUN_LENGTH:
                yield run, line.number, right[at].number


def main(package: Path = PACKAGE, groups: tuple[Group, ...] = GROUPS) -> int:
    failed = False
    for group in groups:
        runs = list(shared(package, group))
        failed = failed or bool(runs and group.enforced)
        verdict = f"{len(runs)} runs of {RUN_LENGTH} lines or more written twice" if runs else "nothing written twice"
        print(f"{group.name}: {verdict}{'' if group.enforced else ' (not enforced yet)'}")
        for left, right, run in runs:
            print(f"  {left.file}:{left.line} and {right.file}:{right.line}, {len(run)} lines from {run[0].text!r}")
    if failed:
        print("Write it once, in a module that both sides use.", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
