"""What a callable says about itself: its parameters with resolved annotations and defaults, and its docstring.

Knows Python only; JSON Schema begins in ``schema``. Docstrings are in Google, NumPy or Sphinx style. Their sections are
found here, line by line, so that everything else keeps its author's words and layout; the inside of a section is read
by griffe, which is imported only when there is a section to read.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from journeyman.core.errors import ToolDefinitionError

EMPTY: Any = inspect.Parameter.empty
_VARIADIC: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


@dataclass(frozen=True)
class Parameter:
    """One argument that the model gives."""

    name: str
    annotation: Any
    default: Any = EMPTY
    default_factory: Callable[..., Any] | None = None
    description: str | None = None
    """What the annotation says; a docstring may say more."""

    @property
    def required(self) -> bool:
        return self.default is EMPTY and self.default_factory is None


@dataclass(frozen=True)
class Signature:
    """What a callable takes and gives."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: Any
    """The annotation; ``EMPTY`` where there is none or it names something that is not defined at run time."""
    context_parameter: str | None
    positional_only: tuple[str, ...]
    docstring: str | None


def function_name(function: Any) -> str:
    """``module.qualname`` of a function, or of what makes an object callable."""
    named = function if inspect.isclass(function) or not callable(function) else _underlying(function)
    module, name = getattr(named, "__module__", None), getattr(named, "__qualname__", None)
    return f"{module}.{name}" if module and name else name or repr(function)


def without_partials(function: Any) -> Any:
    """What ``functools.partial`` was applied to, however often."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def read_callable(function: Callable[..., Any], *, context_type: type, skip_first: bool) -> Signature:
    """Read a function, method, partial or callable object. Raises ToolDefinitionError."""
    name = function_name(function)
    if inspect.isclass(function):
        raise ToolDefinitionError(f"{name} is a class; pass an instance with __call__, or one of its methods")
    if not callable(function):
        raise ToolDefinitionError(f"{name} is not callable; pass a function, a method or an object with __call__")
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        raise ToolDefinitionError(f"{name}: its signature cannot be read ({error}); wrap it in a function") from error
    bound = function.keywords if isinstance(function, functools.partial) else {}
    # What a partial has bound is the developer's choice and no longer the model's.
    declared = [p for p in signature.parameters.values() if p.name not in bound][1 if skip_first else 0 :]
    namespace = _namespace(function, context_type)
    parameters: list[Parameter] = []
    context_parameter = None
    for parameter in declared:
        annotation = _annotation(parameter, name, namespace)
        if not _is_context(annotation, context_type):
            parameters.append(_parameter(parameter, annotation))
        elif context_parameter is None:
            context_parameter = parameter.name
        else:
            raise ToolDefinitionError(
                f"{name}: {context_parameter!r} and {parameter.name!r} are both annotated {context_type.__name__}; "
                "keep one of them"
            )
    return Signature(
        name=name,
        parameters=tuple(parameters),
        returns=_returns(signature.return_annotation, namespace),
        context_parameter=context_parameter,
        positional_only=tuple(p.name for p in declared if p.kind is inspect.Parameter.POSITIONAL_ONLY),
        docstring=_docstring(function),
    )


def _underlying(function: Any) -> Any:
    """The plain function whose module and names count."""
    function = without_partials(function)
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.unwrap(getattr(function, "__func__", function))


def _docstring(function: Any) -> str | None:
    function = without_partials(function)
    if inspect.isroutine(function):
        return inspect.getdoc(function)
    return type(function).__call__.__doc__ or inspect.getdoc(type(function))


def _namespace(function: Any, context_type: type) -> dict[str, Any]:
    """The names that the function's annotations may use."""
    plain = _underlying(function)
    code = getattr(plain, "__code__", None)
    cells = zip(code.co_freevars, plain.__closure__ or (), strict=False) if code else ()
    enclosing = {}
    for name, cell in cells:
        try:
            enclosing[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    generic = {parameter.__name__: parameter for parameter in getattr(plain, "__type_params__", ())}
    # The context may have been imported for the type checker only.
    return {context_type.__name__: context_type, **getattr(plain, "__globals__", {}), **enclosing, **generic}


def _resolve(annotation: Any, namespace: dict[str, Any]) -> Any:
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    return typing.get_type_hints(holder, globalns=namespace, include_extras=True)["it"]


def _annotation(parameter: inspect.Parameter, function: str, namespace: dict[str, Any]) -> Any:
    stars = _VARIADIC.get(parameter.kind)
    if stars:
        raise ToolDefinitionError(
            f"{function}: parameter '{stars}{parameter.name}' cannot be described to a model; "
            "name each parameter, or take one list or dict"
        )
    if parameter.annotation is EMPTY:
        raise ToolDefinitionError(
            f"{function}: parameter {parameter.name!r} has no annotation; write for example '{parameter.name}: str'"
        )
    try:
        return _resolve(parameter.annotation, namespace)
    except Exception as error:  # annotations are arbitrary expressions
        raise ToolDefinitionError(
            f"{function}: the annotation {parameter.annotation!r} of parameter {parameter.name!r} cannot be resolved "
            f"({error}); define or import the name at the top level of the module, outside 'if TYPE_CHECKING'"
        ) from error


def _returns(annotation: Any, namespace: dict[str, Any]) -> Any:
    try:
        return _resolve(annotation, namespace)
    except Exception:  # nothing is validated by it, so a name for the type checker alone is no reason to refuse
        return EMPTY


def _is_context(annotation: Any, context_type: type) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_context(get_args(annotation)[0], context_type)
    if origin in (typing.Union, types.UnionType):
        return any(_is_context(member, context_type) for member in get_args(annotation))
    kind = origin or annotation
    return inspect.isclass(kind) and issubclass(kind, context_type)


def _parameter(parameter: inspect.Parameter, annotation: Any) -> Parameter:
    default = parameter.default
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], EMPTY
    metadata = getattr(annotation, "__metadata__", ())
    fields = [extra for extra in metadata if isinstance(extra, FieldInfo)]
    texts = [extra for extra in metadata if isinstance(extra, str)]
    factory = None
    if default is EMPTY:
        for field in fields:
            default = field.default if field.default not in (PydanticUndefined, ...) else default
            factory = field.default_factory or factory
    description = next((text for text in [*(f.description for f in fields), *texts] if text), None)
    return Parameter(parameter.name, annotation, default, factory, description)


# -- docstrings

_PARAMETER_TITLES = "args", "arguments", "params", "parameters", "keyword args", "keyword arguments", "other parameters"
_KINDS = {
    **dict.fromkeys(_PARAMETER_TITLES, "parameters"),
    **dict.fromkeys(("return", "returns"), "returns"),
    **dict.fromkeys(("raise", "raises", "exceptions", "yield", "yields"), "dropped"),
}
_FIELD_KINDS = {
    **dict.fromkeys(("param", "parameter", "arg", "argument", "key", "keyword", "type"), "parameters"),
    **dict.fromkeys(("return", "returns"), "returns"),
    **dict.fromkeys(("rtype", "raise", "raises", "except", "exception", "yield", "yields", "ytype"), "dropped"),
}
LONGEST_DOCSTRING = 50_000
"""Characters that are read of one."""
_GOOGLE = re.compile(r"([A-Za-z ]+):\s*$")
_UNDERLINE = re.compile(r"-{3,}\s*$")
_SPHINX = re.compile(r":(\w+)(?:\s[^:]*)?:(?:\s|$)")


@dataclass(frozen=True)
class Documentation:
    """A docstring, taken apart."""

    description: str
    """Everything but the sections about parameters, results and exceptions."""
    parameters: dict[str, str]
    returns: str | None


@dataclass
class _Section:
    kind: str
    """parameters, returns, dropped (known and of no use here), or kept (everything else)."""
    style: str = ""
    lines: list[str] = field(default_factory=list)


def read_docstring(text: str | None) -> Documentation:
    """Take a docstring apart. What it names is not compared with any signature."""
    kept: list[str] = []
    parameters: dict[str, str] = {}
    returns: list[str] = []
    for section in _sections(inspect.cleandoc((text or "")[:LONGEST_DOCSTRING]).splitlines()):
        if section.kind == "kept":
            kept += section.lines
        elif section.kind == "parameters":
            parameters |= {name.strip("`*- "): text for name, text in _parse(section) if text}
        elif section.kind == "returns":
            returns.append(_result_text(section))
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Documentation(description, parameters, "\n".join(filter(None, returns)) or None)


def _sections(lines: list[str]) -> Iterator[_Section]:
    current = _Section("kept")
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        opened = _opens(line, following)
        # Google and Sphinx sections end where the indentation does; NumPy ones at the next title.
        dedented = current.style != "numpy" and line.strip() and not line[0].isspace()
        if opened is None and current.kind != "kept" and dedented:
            opened = _Section("kept")
        if opened is not None:
            yield current
            current = opened
        current.lines.append(line)
    yield current


def _opens(line: str, following: str) -> _Section | None:
    """The section that begins at this line, if one does."""
    if _UNDERLINE.match(following) and line.strip():
        return _Section(_KINDS.get(line.strip().lower(), "kept"), "numpy")
    if (match := _GOOGLE.match(line)) and (not following.strip() or following[0].isspace()):
        kind = _KINDS.get(match[1].lower())
        return _Section(kind, "google") if kind else None
    if match := _SPHINX.match(line):
        kind = _FIELD_KINDS.get(match[1])
        return _Section(kind, "sphinx") if kind else None
    return None


def _parse(section: _Section) -> list[tuple[str, str]]:
    """The entries of a section, as (name, description)."""
    import griffe

    parser = {"google": griffe.parse_google, "numpy": griffe.parse_numpy, "sphinx": griffe.parse_sphinx}[section.style]
    text = "\n".join(section.lines)
    if section.style == "google":  # griffe knows fewer titles, and no blank line after them
        text = f"{section.kind.capitalize()}:\n" + "\n".join(section.lines[1:]).lstrip("\n")
    # To griffe, a section is one only after a summary line.
    parsed = parser(griffe.Docstring(f"-\n\n{text}"), warnings=False)
    return [
        (str(getattr(entry, "name", "") or ""), inspect.cleandoc(entry.description))
        for part in parsed
        if isinstance(part.value, list)
        for entry in part.value
        if hasattr(entry, "description")
    ]


def _result_text(section: _Section) -> str:
    entries = _parse(section)
    if len(entries) == 1 and entries[0][1]:
        return entries[0][1]
    # Several entries, or a sentence that was taken for several: as the author wrote it.
    body = section.lines[1:] if section.style == "google" else section.lines[2:]
    return textwrap.dedent("\n".join(body)).strip()
