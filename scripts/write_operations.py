"""Write what is made of the table of operations: the reference in docs/operations.md.

``python -m scripts.write_operations``
"""

from __future__ import annotations

from inspect import Parameter
from pathlib import Path
from typing import Any

from journeyman.app.operations.table import Input, Operation, table
from journeyman.doors.http.operated import ROUTES

PAGE = Path(__file__).parents[1] / "docs" / "operations.md"
BEGIN, END = "<!-- operations: made by scripts/write_operations.py -->", "<!-- end of operations -->"


def page(text: str) -> str:
    """The page with its table as the operations are now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{reference()}{END}{rest.partition(END)[2]}"


def reference() -> str:
    places = {item.name: (method, path) for method, path, item, *_ in ROUTES}
    lines = ["| operation | does | takes | needs | over HTTP |", "|---|---|---|---|---|"]
    for name, item in table().items():
        method, path = places.get(name, ("", ""))
        route = f"`{method} /api/v1{path}`" if path else "–"
        needs = f"`{item.permission}`" if item.permission else "–"
        lines.append(f"| `{name}` | {item.summary} | {_takes(item)} | {needs} | {route} |")
    return "\n".join([*lines, ""])


def _takes(item: Operation[..., Any]) -> str:
    return ", ".join(_input(value) for value in item.inputs) or "–"


def _input(value: Input) -> str:
    if value.is_body:
        return ", ".join(f"`{name}`" for name in value.kind.model_fields)
    return f"**`{value.name}`**" if value.default is Parameter.empty else f"`{value.name}`"


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
