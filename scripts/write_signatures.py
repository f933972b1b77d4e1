"""Write docs/signatures.md: what every public name of ``journeyman`` takes, with types and defaults.

``python -m scripts.write_signatures``
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import journeyman
from journeyman.core.data import Entity

PAGE = Path(__file__).parents[1] / "docs" / "signatures.md"
HEAD = """# Signatures

What each public name takes, made from the code by `scripts/write_signatures.py`. [The reference](reference.md) says
what it is for. What stands behind `*` is given by name; `…` is a default that is made when it is needed.
"""
WIDTH = 110


def page() -> str:
    """The page as the code is now."""
    named = [(name, getattr(journeyman, name)) for name in sorted(journeyman.__all__, key=str.lower)]
    texts = [HEAD, "## Functions"]
    texts += [_shown(name, [signature(name, value)], value) for name, value in named if inspect.isfunction(value)]
    texts.append("## Classes")
    texts += [_shown(name, list(of_class(name, value)), value) for name, value in named if inspect.isclass(value)]
    return "\n\n".join(text.strip("\n") for text in texts) + "\n"


def _shown(name: str, lines: list[str], value: Any) -> str:
    first = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("``", "`")
    code = "\n".join(lines)
    return f"### `{name}`\n{first}\n\n```text\n{code}\n```"


def of_class(name: str, value: Any) -> Iterator[str]:
    if issubclass(value, Enum):
        yield "\n".join(f"{name}.{item.name} = {item.value!r}" for item in value)
        return
    if issubclass(value, BaseModel):
        yield _call(name, ["*", *(_field(key, field, value) for key, field in value.model_fields.items())])
    elif "_is_protocol" in vars(value):
        yield f"class {name}(Protocol)"
    elif "__init__" in vars(value) or not issubclass(value, Exception):
        yield signature(name, value.__init__, bound=True)
    else:
        yield f"{name}(message)"
    rooms = [kind for kind in value.__mro__ if kind.__module__.startswith("journeyman.") and kind is not Entity]
    for key, item in {key: item for kind in reversed(rooms) for key, item in vars(kind).items()}.items():
        plain = item.__func__ if isinstance(item, classmethod | staticmethod) else item
        known = inspect.isfunction(plain) and plain.__doc__ and not plain.__name__.startswith("_")
        if known and not key.startswith("_") and "validator" not in repr(item):
            made = isinstance(item, classmethod)
            yield signature(f"{name}.{key}" if made else f".{key}", plain, bound=not isinstance(item, staticmethod))


def signature(name: str, function: Any, *, bound: bool = False) -> str:
    found = inspect.signature(function)
    parts: list[str] = []
    star = False
    for parameter in list(found.parameters.values())[1 if bound else 0 :]:
        if parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.VAR_KEYWORD and str(parameter.annotation).startswith("Unpack["):
            options = option_classes()[str(parameter.annotation)[len("Unpack[") : -1]]
            parts += ["*"] if not star else []
            parts += [f"{key}: {_type(kind)} = …" for key, kind in options.items()]
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        mark = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        star = star or mark == "*"
        kind = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
        parts.append(f"{mark}{parameter.name}{kind}{_default(parameter.default)}")
    returns = "" if found.return_annotation in (found.empty, "None", None) else f" -> {_type(found.return_annotation)}"
    return ("async " if inspect.iscoroutinefunction(function) else "") + _call(name, parts) + returns


@cache
def option_classes() -> dict[str, dict[str, str]]:
    """What stands for many options at once, with their types. None is imported: some are for type checkers alone."""
    found: dict[str, dict[str, str]] = {}
    trees = [
        ast.parse(file.read_text(encoding="utf-8")) for file in sorted(Path(journeyman.__file__).parent.rglob("*.py"))
    ]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.keywords]
    for node in sorted(classes, key=lambda node: "TypedDict" not in ast.unparse(node.bases[0])):
        own = {
            ast.unparse(item.target): ast.unparse(item.annotation)
            for item in node.body
            if isinstance(item, ast.AnnAssign)
        }
        found[node.name] = {**found.get(ast.unparse(node.bases[0]), {}), **own}
    return found


def _call(name: str, parts: list[str]) -> str:
    line = f"{name}({', '.join(parts)})"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def _field(name: str, field: Any, owner: type[BaseModel]) -> str:
    kind = next((kinds[name] for kinds in map(_annotations, owner.__mro__) if name in kinds), "Any")
    default = (
        "" if field.is_required() else " = …" if field.default is PydanticUndefined else f" = {_value(field.default)}"
    )
    return f"{name}: {_type(kind)}{default}"


def _annotations(owner: type) -> dict[str, Any]:
    return dict(vars(owner).get("__annotations__", {}))


def _type(kind: Any) -> str:
    text = kind if isinstance(kind, str) else getattr(kind, "__forward_arg__", None) or inspect.formatannotation(kind)
    bare = re.sub(r"\b(?:typing|collections\.abc|journeyman(?:\.\w+)+)\.", "", text)
    return ast.unparse(_Plain().visit(ast.parse(bare, mode="eval")))


class _Plain(ast.NodeTransformer):
    """Types without what is checked of their values."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        annotated = isinstance(node.value, ast.Name) and node.value.id == "Annotated"
        return (
            self.visit(node.slice.elts[0])
            if annotated and isinstance(node.slice, ast.Tuple)
            else self.generic_visit(node)
        )


def _default(value: Any) -> str:
    return "" if value is inspect.Parameter.empty else f" = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    plain = value is None or isinstance(value, str | int | float | bool | tuple | frozenset | dict)
    return repr(value) if plain and len(repr(value)) < 60 else "…"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
