"""The ratchet of sizes, on small trees. Whether the real one grew: `make size`."""

import json
from pathlib import Path

import pytest

from scripts import size


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    write(tmp_path, "__init__.py", 1)
    write(tmp_path, "core/data.py", 10)
    write(tmp_path, "core/data.pyi", 5)
    (tmp_path / "scripts" / "sizes.json").write_text('{"rooms": {}, "walks": {}, "raised": []}')
    assert size.main(["--lower"], tmp_path) == 0
    return tmp_path


def write(project: Path, name: str, lines: int) -> None:
    path = project / "src" / "journeyman" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("pass\n" * lines)


def committed(project: Path) -> dict[str, object]:
    rooms: dict[str, object] = json.loads((project / "scripts" / "sizes.json").read_text())["rooms"]
    return rooms


def test_a_tree_as_committed_passes_and_its_table_is_printed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert size.main([], project) == 0
    assert " ".join(capsys.readouterr().out.split()) == "room files lines (root) 1 1 core 2 15 total 3 16"


def test_a_room_that_grew_fails_also_where_the_whole_did_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "__init__.py", 0)
    write(project, "core/data.py", 11)
    assert size.main([], project) == size.main(["--lower"], project) == 1
    assert "core: 15 -> 16 lines\n" in capsys.readouterr().err
    assert committed(project) == {"(root)": [1, 1], "core": [2, 15], "total": [3, 16]}


def test_a_room_without_figures_counts_in_the_total_until_they_are_written(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "core/data.py", 3)
    write(project, "gram/parsing.py", 6)
    assert size.main([], project) == 1
    assert "total: 3 -> 4 files" in capsys.readouterr().err
    (project / "src" / "journeyman" / "core" / "data.pyi").unlink()
    assert size.main([], project) == 0
    assert "--lower" in capsys.readouterr().out
    assert size.main(["--lower"], project) == 0
    assert committed(project) == {"(root)": [1, 1], "core": [1, 3], "gram": [1, 6], "total": [3, 10]}
    write(project, "gram/parsing.py", 7)
    assert size.main([], project) == 1


def test_larger_figures_need_a_page_that_says_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "core/data.py", 12)
    assert size.main(["--decision", "0099-more.md"], project) == 1
    assert "docs/decisions/0099-more.md is not there" in capsys.readouterr().err
    (project / "docs" / "decisions" / "0099-more.md").touch()
    assert size.main(["--decision", "0099-more.md"], project) == 0
    assert size.main([], project) == 0
    raised = json.loads((project / "scripts" / "sizes.json").read_text())["raised"]
    assert raised == [
        "core: 15 -> 17 lines (0099-more.md)",
        "total: 16 -> 18 lines (0099-more.md)",
    ]
