"""The check for lines written twice, on small trees. Whether the real one has some: `make size`."""

from pathlib import Path

import pytest

from scripts.shared_lines import GROUPS, PACKAGE, Group, main

DOORS = Group("doors", (("cli/*.py",), ("http/*.py",)))
SIX = [f"step_{number}(order)" for number in range(6)]


def write(package: Path, name: str, *lines: str) -> None:
    path = package / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def in_a_function(lines: list[str]) -> list[str]:
    return ["async def handle(order):", *(f"    await {line}  # and wait" if line else "" for line in lines)]


def test_six_lines_in_two_doors_fail_however_they_are_indented_and_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "cli/runs.py", "order = 1", *SIX)
    write(tmp_path, "http/runs.py", "import os", *in_a_function([*SIX[:3], "", *SIX[3:]]))
    assert main(tmp_path, (DOORS,)) == 1
    assert "cli/runs.py:2 and http/runs.py:3, 6 lines from 'step_0(order)'" in capsys.readouterr().out


def test_five_lines_pass_also_where_imports_and_brackets_stand_beside_them(tmp_path: Path) -> None:
    for door in ("cli", "http"):
        write(tmp_path, f"{door}/runs.py", "from os import (", "    path,", "    sep,", ")", *SIX[:5], "(", ")", door)
    assert main(tmp_path, (DOORS,)) == 0


def test_two_files_of_one_side_may_look_alike_but_not_where_each_is_a_side(tmp_path: Path) -> None:
    write(tmp_path, "cli/runs.py", *SIX)
    write(tmp_path, "cli/tools.py", *SIX)
    assert main(tmp_path, (DOORS,)) == 0
    assert main(tmp_path, (Group("commands", (("cli/*.py",),)),)) == 1


def test_a_group_that_is_not_enforced_is_reported_and_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "cli/runs.py", *SIX)
    write(tmp_path, "http/runs.py", *SIX)
    assert main(tmp_path, (DOORS._replace(enforced=False),)) == 0
    assert "1 runs of 6 lines or more written twice (not enforced yet)" in capsys.readouterr().out


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_a_group_has_files_to_compare(group: Group) -> None:
    assert any(path for side in group.sides for glob in side for path in PACKAGE.glob(glob))
