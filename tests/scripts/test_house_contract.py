"""The import contract's own type, on small graphs made by hand. Whether the real house keeps it: `make contract`."""

import pytest
from grimp import ImportGraph
from importlinter.domain.contract import InvalidContractOptions

from scripts.house import HouseContract

ROWS = {"core": [], "tools": ["core"], "doors": ["core"], "doors.cli": ["core", "doors", "tools"]}


def problems(*imports: tuple[str, str], rows: dict[str, list[str]] = ROWS) -> list[str]:
    graph = ImportGraph()
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported, line_number=7, line_contents="import")
    contract = HouseContract(name="house", session_options={}, contract_options={"rows": rows})
    check = contract.check(graph, verbose=False)
    found: list[str] = check.metadata["problems"]
    assert check.kept is not bool(found)
    return found


def test_imports_that_the_rows_allow_are_kept() -> None:
    assert (
        problems(
            ("journeyman.tools.tool", "journeyman.core.calls"),
            ("journeyman.core.calls", "journeyman.core.data"),
            ("journeyman", "journeyman.tools.tool"),
        )
        == []
    )


def test_an_import_against_the_arrows_names_both_modules_the_line_and_the_row() -> None:
    [problem] = problems(("journeyman.core.calls", "journeyman.tools.tool"))
    assert problem == (
        "journeyman.core.calls imports journeyman.tools.tool (line 7), but 'core' may import no other room"
    )


def test_a_room_without_a_row_is_a_problem() -> None:
    [problem] = problems(("journeyman.attic.box", "journeyman.core.calls"))
    assert problem.startswith("journeyman.attic.box is in no room")


def test_a_room_may_not_import_the_root_package() -> None:
    [problem] = problems(("journeyman.tools.tool", "journeyman"))
    assert "imports journeyman itself" in problem


def test_a_longer_row_wins_over_a_shorter_one() -> None:
    assert problems(("journeyman.doors.cli.main", "journeyman.tools.tool")) == []
    assert len(problems(("journeyman.doors.http", "journeyman.tools.tool"))) == 1


def test_a_foreign_package_named_like_a_room_is_not_that_room() -> None:
    assert problems(("journeyman.core.calls", "tools.something")) == []


def test_a_row_that_names_an_unknown_room_is_refused() -> None:
    with pytest.raises(InvalidContractOptions) as refused:
        problems(rows={"core": ["cellar"]})
    assert "cellar" in refused.value.errors["rows"]
