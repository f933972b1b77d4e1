"""Draws the rooms of the package from its real imports: a picture and a table, for docs/architecture.md.

``python -m scripts.draw_house`` writes both anew; a test compares them with what is committed.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path

import grimp

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "docs" / "architecture.md"
PICTURE = PROJECT / "docs" / "assets" / "rooms.svg"
BEGIN, END = "<!-- rooms: made by scripts/draw_house.py -->", "<!-- end of rooms -->"

BOX_WIDTH, BOX_HEIGHT, GAP, RISE = 104, 34, 18, 74
NO_ROOMS = ("__main__", "tasks")
"""Modules of the package itself: how it is started, and names of ``core`` under a name of their own."""


def imports() -> dict[str, set[str]]:
    """Each room and the rooms it imports, as the source has it."""
    graph = grimp.build_graph("journeyman", exclude_type_checking_imports=True)
    rooms: dict[str, set[str]] = {}
    for module in graph.modules:
        room = _room(module)
        if room is None:
            continue
        found = rooms.setdefault(room, set())
        found |= {target for name in graph.find_modules_directly_imported_by(module) if (target := _room(name))}
        found.discard(room)
    return rooms


def _room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] not in NO_ROOMS else None


def levels(rooms: dict[str, set[str]]) -> dict[str, int]:
    """How far above the ground a room is: one above the highest it imports."""
    found: dict[str, int] = {}

    def level(room: str) -> int:
        if room not in found:
            found[room] = max((level(other) + 1 for other in rooms[room]), default=0)
        return found[room]

    for room in sorted(rooms):
        level(room)
    return found


def arrows(rooms: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that no longer way says already, so that the picture stays readable."""

    def reaches(start: str, goal: str) -> bool:
        return any(other == goal or reaches(other, goal) for other in rooms[start])

    return sorted(
        (room, other)
        for room, found in rooms.items()
        for other in found
        if not any(between != other and reaches(between, other) for between in found)
    )


def picture(rooms: dict[str, set[str]]) -> str:
    heights = levels(rooms)
    rows: dict[int, list[str]] = {}
    for room in sorted(rooms):
        rows.setdefault(heights[room], []).append(room)
    width = max(len(row) for row in rows.values()) * (BOX_WIDTH + GAP) + GAP
    top = max(rows)
    height = (top + 1) * RISE + GAP
    places: dict[str, tuple[float, float]] = {}
    for level, row in rows.items():
        left = (width - len(row) * (BOX_WIDTH + GAP) + GAP) / 2
        for number, room in enumerate(row):
            places[room] = (left + number * (BOX_WIDTH + GAP), GAP + (top - level) * RISE)
    lines = []
    for room, other in arrows(rooms):
        (x1, y1), (x2, y2) = places[room], places[other]
        start, end = f"{x1 + BOX_WIDTH / 2:g} {y1 + BOX_HEIGHT:g}", f"{x2 + BOX_WIDTH / 2:g} {y2:g}"
        lines.append(f'<path d="M {start} L {end}" />')
    boxes = [
        f'<rect x="{x:g}" y="{y:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" />'
        f'<text x="{x + BOX_WIDTH / 2:g}" y="{y + 22:g}">{escape(room)}</text>'
        for room, (x, y) in places.items()
    ]
    style = (
        "path{stroke:#8a93a5;fill:none}rect{fill:#eef2fb;stroke:#5b6b8c}"
        "text{font:14px sans-serif;text-anchor:middle;fill:#1d2433}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="The rooms of Journeyman; each imports only rooms below it">\n<style>{style}</style>\n'
        + "\n".join([*lines, *boxes])
        + "\n</svg>\n"
    )


def table(rooms: dict[str, set[str]]) -> str:
    heights = levels(rooms)
    lines = ["| room | holds | imports |", "|---|---|---|"]
    for room in sorted(rooms, key=lambda name: (-heights[name], name)):
        found = ", ".join(f"`{other}`" for other in sorted(rooms[room])) or "–"
        lines.append(f"| `{room}` | {_holds(room)} | {found} |")
    return "\n".join(lines)


def _holds(room: str) -> str:
    """The first paragraph of the package's docstring."""
    source = (PROJECT / "src" / "journeyman" / room / "__init__.py").read_text(encoding="utf-8")
    text = ast.get_docstring(ast.parse(source)) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def page(text: str, rooms: dict[str, set[str]]) -> str:
    """The page with the table between its marks made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(rooms)}\n{END}{after}"


def main() -> None:
    rooms = imports()
    PICTURE.write_text(picture(rooms), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rooms), encoding="utf-8")


if __name__ == "__main__":
    main()
