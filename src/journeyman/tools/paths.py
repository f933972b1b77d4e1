"""Objects by import path, ``module:name`` or ``path/to/file.py:name``, as command lines and configuration write it."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, TypeVar, overload

from journeyman.core.errors import ConfigurationError, ToolDefinitionError
from journeyman.tools.decorator import tool
from journeyman.tools.tool import Tool

T = TypeVar("T")

SUGGESTIONS = 3

_folders: list[str] = []
"""What was put in front of ``sys.path`` for files. Later folders go behind earlier ones, so that a name which was
imported keeps its meaning: a child process imports by name, with this ``sys.path``."""


class ImportPathError(ConfigurationError):
    """Nothing usable is at an import path. ``problem`` says why, ``instead`` names paths that may be meant."""

    def __init__(self, path: str, problem: str, *, instead: Sequence[str] = ()) -> None:
        self.path = path
        self.problem = problem
        self.instead = tuple(instead[:SUGGESTIONS])
        hint = f"; did you mean {' or '.join(map(repr, self.instead))}?" if instead else ""
        super().__init__(f"{path!r} {problem}{hint}")


def split_path(path: str) -> tuple[str, str]:
    """The module or file of an import path, and the name in it, which may be empty."""
    if path.endswith(".py"):
        return path, ""
    file, mark, name = path.rpartition(".py:")
    if mark:
        return f"{file}.py", name
    place, _, name = path.partition(":")
    return place, name


@overload
def import_path(path: str) -> Any: ...
@overload
def import_path(path: str, *, kind: type[T]) -> T: ...
def import_path(path: str, *, kind: type[Any] | None = None) -> Any:
    """The object at an import path, or the module itself where the path has no name. Raises ImportPathError.

    A file is imported once, under the name that other modules import it by; its folder, or the folder of its package,
    joins ``sys.path``. So it can import its siblings, and a child process can import its tools.
    """
    place, name = split_path(path)
    if not place:
        raise ImportPathError(path, "is no import path; write 'module:name' or 'file.py:name'")
    module = _file(path, place) if place.endswith(".py") else _module(path, place)
    value: Any = module
    for part in name.split(".") if name else ():
        try:
            value = getattr(value, part)
        except AttributeError:
            owner = f"module {module.__name__!r}" if value is module else _described(value)
            near = get_close_matches(name, dir(module), n=SUGGESTIONS) if kind is None else _names(module, kind, name)
            instead = [f"{place}:{item}" for item in near]
            raise ImportPathError(path, f"names nothing: {owner} has no {part!r}", instead=instead) from None
    if kind is not None and not isinstance(value, kind):
        instead = [f"{place}:{item}" for item in _names(module, kind, name)]
        raise ImportPathError(path, f"is {_described(value)}, not {_article(kind.__name__)}", instead=instead)
    return value


def changed_since_import(path: str) -> bool:
    """Whether a module has gained the name at an import path since it was imported: its file defines it now."""
    place, name = split_path(path)
    stem = Path(place).stem if place.endswith(".py") else place
    module = sys.modules.get(stem)
    file = getattr(module, "__file__", None)
    if module is None or file is None or hasattr(module, name):
        return False
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return name in {getattr(node, "name", None) or getattr(node, "id", None) for node in (*tree.body, *assigned)}


def tools_at(paths: Iterable[str], *, expand: Callable[[Any], Iterable[Tool[..., Any]] | None]) -> list[Tool[..., Any]]:
    """The tools at some import paths; a plain function becomes one, and ``expand`` says what else holds some.

    Raises one ToolDefinitionError that lists everything that cannot be used.
    """
    tools: list[Tool[..., Any]] = []
    problems: list[str] = []
    for path in paths:
        try:
            tools += _tools(path, expand)
        except (ImportPathError, ToolDefinitionError) as error:
            problems.append(str(error))
    if problems:
        raise ToolDefinitionError("\n".join(problems))
    return tools


def _tools(path: str, expand: Callable[[Any], Iterable[Tool[..., Any]] | None]) -> list[Tool[..., Any]]:
    if not split_path(path)[1]:
        raise ToolDefinitionError(f"{path!r} is no import path; write 'module:function' or 'file.py:function'")
    value = import_path(path)
    if isinstance(value, Tool):
        return [value]
    several = expand(value)
    if several is not None:
        return list(several)
    if isinstance(value, type) or not callable(value):
        raise ToolDefinitionError(f"{path!r} is {_described(value)}, not a tool, a function or a library")
    return [tool(value)]


# --- modules


def _module(path: str, name: str) -> ModuleType:
    file = Path(name if "/" in name or "\\" in name else name.replace(".", "/")).with_suffix(".py")
    instead = [path.replace(name, str(file), 1)] if file.is_file() else []
    if "/" in name or "\\" in name:
        raise ImportPathError(path, "is neither a module nor a file with the ending '.py'", instead=instead)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a module's code can raise anything
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise ImportPathError(path, "names no module on the Python path", instead=instead) from None
        raise _failed(path, error) from error


def _file(path: str, place: str) -> ModuleType:
    file = Path(place)
    if not file.is_file():
        raise ImportPathError(path, f"names no file: {place!r} is not there")
    file = file.resolve()
    names, root = ([] if file.stem == "__init__" else [file.stem]), file.parent
    while (root / "__init__.py").is_file():
        names, root = [root.name, *names], root.parent
    if any("." in name for name in names):
        raise ImportPathError(path, "cannot be imported: the name of a module has no dots; rename the file")
    if str(root) not in sys.path:
        sys.path.insert(len(_folders), str(root))
        _folders.append(str(root))
    if str(file.parent) not in sys.path:  # last, because within a package siblings are imported from the package
        sys.path.append(str(file.parent))
    importlib.invalidate_caches()  # the file may be younger than the last look into its folder
    top = file if len(names) == 1 and file.stem == names[0] else root / names[0] / "__init__.py"
    try:
        spec = None if names[0] == "__main__" else find_spec(names[0])
        if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == top:
            return importlib.import_module(".".join(names))
    except (Exception, SystemExit) as error:
        raise _failed(path, error) from error
    raise ImportPathError(path, f"has the name of another module, {names[0]!r}; rename the file")


def _failed(path: str, error: BaseException) -> ImportPathError:
    """The error of a module's own code, and the line of the user's own files that led to it."""
    said, place = str(error), _place_of(error)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        said, place = error.msg, (error.filename, error.lineno)
    where = f" ({_relative(place[0])}, line {place[1]})" if place is not None else ""
    return ImportPathError(path, f"cannot be imported: {type(error).__name__}: {said}{where}")


def _place_of(error: BaseException) -> tuple[str, int] | None:
    """The innermost line that is nobody else's; where there is none, the innermost one of all."""
    lines = [(frame.f_code.co_filename, number) for frame, number in walk_tb(error.__traceback__)]
    lines = [(file, number) for file, number in lines if not file.startswith("<")]
    from journeyman.tools.fingerprint import is_own  # only needed where something went wrong

    own = [line for line in lines if is_own(Path(line[0]))]
    return next(reversed(own or lines), None)


def _relative(file: str) -> str:
    return str(Path(file).relative_to(Path.cwd())) if Path(file).is_relative_to(Path.cwd()) else file


def _names(module: ModuleType, kind: type, wanted: str) -> list[str]:
    """What a module has of a kind, most like the wanted name first."""
    names = [name for name, value in vars(module).items() if isinstance(value, kind)]
    return sorted(names, key=lambda name: -SequenceMatcher(None, name, wanted).ratio())


def _described(value: object) -> str:
    return _article(type(value).__name__)


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"
