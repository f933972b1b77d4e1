"""The import contract of the house, as a contract type for import-linter: each room imports only what its row says.

The rows themselves are in pyproject.toml. The types import-linter brings list what is forbidden, so a new room would be
free to import anything until somebody remembers it; here a room without a row is an error. Rows for rooms that are not
built yet do no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from importlinter import Contract, ContractCheck, fields, output

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from grimp import ImportGraph

ROOT = "journeyman"


class Rows(fields.Field[dict[str, frozenset[str]]]):
    """A table: a room, and the rooms it may import."""

    def parse(self, raw_data: Any) -> dict[str, frozenset[str]]:
        if not isinstance(raw_data, dict):
            raise fields.ValidationError(f"must be a table of rooms, is {raw_data!r}")
        for room, allowed in raw_data.items():
            unknown = sorted(set(allowed) - raw_data.keys())
            if unknown:
                raise fields.ValidationError(f"row {room!r} names rooms that have no row: {unknown}")
        return {room: frozenset(allowed) for room, allowed in raw_data.items()}


class HouseContract(Contract):
    """Every import from one room into another is in the importing room's row."""

    type_name = "house"
    rows = Rows()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        table: dict[str, frozenset[str]] = self.rows  # type: ignore[assignment]  # import-linter fills fields in
        problems = [problem for module in sorted(graph.modules) for problem in _problems(graph, table, module)]
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(f"- {problem}", bold=False)
        output.new_line()


def _problems(graph: ImportGraph, table: dict[str, frozenset[str]], module: str) -> Iterator[str]:
    # The root package only gathers the public names, so it may import every room; no room may import it.
    if not module.startswith(f"{ROOT}."):
        return
    room = _room(table, module)
    if room is None:
        yield f"{module} is in no room: give it a row in pyproject.toml (tool.importlinter)"
        return
    for imported in sorted(graph.find_modules_directly_imported_by(module)):
        target = _room(table, imported)
        if imported == ROOT or (target is not None and target != room and target not in table[room]):
            details = graph.get_import_details(importer=module, imported=imported)
            lines = ", ".join(str(line) for line in sorted({detail["line_number"] for detail in details}))
            allowed = ", ".join(sorted(table[room])) or "no other room"
            name = f"{ROOT} itself, or a module that does not exist," if imported == ROOT else imported
            yield f"{module} imports {name} (line {lines}), but {room!r} may import {allowed}"


def _room(table: dict[str, frozenset[str]], module: str) -> str | None:
    """The longest row that holds the module, so that `doors.cli` can differ from `doors`."""
    root, *parts = module.split(".")
    if root != ROOT:
        return None
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in table), None)
