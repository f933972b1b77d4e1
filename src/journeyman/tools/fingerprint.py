"""What a function does, as a short text that changes when the function does: approvals are bound to it.

Taken from what runs and not from files, which may have changed since they were imported. It counts the bytecode (not
where it stands, nor how it is laid out), defaults, the plain values a function closes over, and what it uses of its own
module: functions, classes and constants (``LIKE_THIS``). Lists, dictionaries and other objects are state, which changes
while the program runs and differs between processes: of these only the type counts.

What it imports of the user's own modules counts by their files (``modules_fingerprint``): a process that is started
later, or a function that imports while it runs, takes them as they are by then.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from journeyman.core.data import digest
from journeyman.tools.callables import without_partials

_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))
_MOST_PARTS = 2_000
"""After so many functions and classes no more are looked at."""


def code_fingerprint(function: Callable[..., Any]) -> str:
    """The fingerprint of a function, method, partial or object with ``__call__``."""
    module = getattr(_innermost(function), "__module__", None) or ""
    hasher = hashlib.sha256()
    for part in _Reader(module).parts(function):
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def modules_fingerprint(function: Callable[..., Any]) -> str:
    """Of the module of a function and of those it imports, at whatever depth, as far as they are the user's own.

    Neither comments nor layout count. Empty where the function is of an installed package, or has no file.
    """
    sources = _own_sources(function)
    return digest(*sorted(f"{path.name} {source.digest}" for path, source in sources.items())) if sources else ""


def loads_by_name(function: Callable[..., Any]) -> bool:
    """Whether these modules start programs, or load code that no import names: what that does is in no fingerprint."""
    return any(source.loads for source in _own_sources(function).values())


def _own_sources(function: Callable[..., Any]) -> dict[Path, _Source]:
    module = sys.modules.get(getattr(_innermost(function), "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None or not is_own(Path(file)):
        return {}
    spec = getattr(module, "__spec__", None)
    name = module.__name__ if spec is None else spec.name
    path = Path(file).resolve()
    root = path.parents[min(name.count(".") + (path.name == "__init__.py"), len(path.parents) - 1)]
    searched = dict.fromkeys((root, *(Path(entry).resolve() for entry in sys.path)))
    folders = [folder for folder in searched if is_own(folder)]
    sources: dict[Path, _Source] = {}
    top_levels = {name.partition(".")[0]: [root]} if _has(root, name.partition(".")[0]) else {}
    pending = [(path, name)] if top_levels else []
    while pending:
        path, name = pending.pop()
        if path in sources or (source := _source(path)) is None:
            continue
        sources[path] = source
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for level, imported in source.imports:
            steps = package.split(".")
            above = ".".join(steps[: len(steps) - level + 1]) if level else ""
            wanted = ".".join(filter(None, (above, imported)))
            top = wanted.partition(".")[0]
            if top not in top_levels:  # most are of installed packages, and looked for once
                top_levels[top] = [folder for folder in folders if _has(folder, top)]
            pending += _files(wanted, top_levels[top])
    return sources


class _Source(NamedTuple):
    """What a file says: a digest of its syntax, what it imports, with the dots before it, and whether it starts
    programs or loads code by names that are made while it runs."""

    digest: str
    imports: frozenset[tuple[int, str]]
    loads: bool


_STARTERS = frozenset({"subprocess", "runpy", "ctypes", "pty", "os.system", "os.popen"})
_LOADING = frozenset({"exec", "eval", "__import__", "import_module"})
_LOADING_OF = frozenset({"import_module", "spec_from_file_location", "system", "popen", "create_subprocess_exec"})


_SOURCES: dict[Path, tuple[tuple[int, ...], _Source]] = {}
"""By file, with what tells a change of it."""


def _source(path: Path) -> _Source | None:
    try:
        about = path.stat()
        # The time of a change of the inode cannot be set back, as that of the content can.
        state = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        if (known := _SOURCES.get(path)) is not None and known[0] == state:
            return known[1]
        data = path.read_bytes()
    except OSError:
        return None
    imports: set[tuple[int, str]] = set()
    loads = False
    try:
        tree = ast.parse(data)
        text = ast.dump(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports.update((0, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                imports.add((node.level, node.module or ""))
                imports.update((node.level, ".".join(filter(None, (node.module, a.name)))) for a in node.names)
            elif isinstance(node, ast.Call):
                plain = isinstance(node.func, ast.Name)
                called = getattr(node.func, "id" if plain else "attr", "")
                name = getattr(node.args[0], "value", None) if node.args else None
                if called in ("import_module", "__import__") and isinstance(name, str):  # as good as an import
                    imports.add((len(name) - len(name.lstrip(".")), name.lstrip(".")))
                else:
                    loads = loads or called in (_LOADING if plain else _LOADING_OF)
        loads = loads or any(not level and name in _STARTERS for level, name in imports)
    except (SyntaxError, ValueError, RecursionError):
        text = data.hex()
    source = _Source(digest(text), frozenset(imports), loads)
    _SOURCES[path] = (state, source)
    return source


def _files(name: str, folders: list[Path]) -> Iterator[tuple[Path, str]]:
    """Where a module, and the packages it is in, would be imported from."""
    steps = name.split(".")
    for count in range(1, len(steps) + 1):
        inner = "/".join(steps[:count])
        candidates = (folder / end for folder in folders for end in (f"{inner}/__init__.py", f"{inner}.py"))
        path = next((path for path in candidates if path.is_file()), None)
        if path is not None and is_own(path):
            yield path.resolve(), ".".join(steps[:count])


class _Folder(NamedTuple):
    """A folder that is searched: the names in it, and those of them that belong to packages installed there."""

    names: frozenset[str]
    installed: frozenset[str]


_FOLDERS: dict[Path, tuple[int, _Folder]] = {}
"""By path, with the time of its last change."""


def _has(folder: Path, top: str) -> bool:
    """Whether a module or package of the user's own with this name is in a folder.

    ``pip install --target`` puts packages beside the user's own modules; each lists its files.
    """
    try:
        changed = folder.stat().st_mtime_ns
        if (known := _FOLDERS.get(folder)) is None or known[0] != changed:
            names = frozenset(entry.name for entry in folder.iterdir())
            records = (folder / name / "RECORD" for name in names if name.endswith(".dist-info"))
            lines = (line for record in records if record.is_file() for line in record.read_text().splitlines())
            known = changed, _Folder(names, frozenset(line.split(",")[0].split("/")[0] for line in lines))
            _FOLDERS[folder] = known
    except (OSError, UnicodeDecodeError):
        return True  # looked for where it may be
    about = known[1]
    return any(name in about.names and name not in about.installed for name in (top, f"{top}.py"))


_OTHERS = (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib")), Path(__file__).parents[1])


def is_own(path: Path) -> bool:
    """Whether a file or folder is the user's, and not one of Python, of an installed package or of this one."""
    if any(step in ("site-packages", "dist-packages") for step in path.parts):
        return False
    return not any(path.is_relative_to(other) for other in _OTHERS)


def _innermost(function: Any) -> Any:
    function = without_partials(function)
    function = inspect.unwrap(getattr(function, "__func__", function))
    return function if inspect.isroutine(function) else type(function)


class _Reader:
    """Goes through a function and what it uses, each once."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._seen: set[int] = set()

    def parts(self, item: Any) -> Iterator[str]:
        match item:
            case Enum():
                yield f"{type(item).__qualname__}.{item.name}"
            case _ if isinstance(item, _PLAIN):
                yield f"{type(item).__name__} {item!r}"
            case tuple():
                yield f"({len(item)}"
                for inner in item:
                    yield from self.parts(inner)
            case frozenset():
                yield from ("{", *sorted("\n".join(self.parts(inner)) for inner in item), "}")
            case CodeType():
                yield from self._code(item)
            case functools.partial():
                for inner in (item.func, item.args, tuple(sorted(item.keywords.items(), key=lambda pair: pair[0]))):
                    yield from self.parts(inner)
            case MethodType():
                yield from self.parts(item.__func__)
                yield from self._class(item.__self__ if isinstance(item.__self__, type) else type(item.__self__))
            case FunctionType():
                yield from self._function(item)
            case type():
                yield from self._class(item)
            case _ if isinstance(function := getattr(item, "function", None), FunctionType | MethodType):
                yield from self.parts(function)  # another tool
            case _:
                yield f"{type(item).__module__}.{type(item).__qualname__} {getattr(item, '__qualname__', '')}"
                if callable(item) and not inspect.isroutine(item):
                    yield from self._class(type(item))

    def _first_time(self, item: Any) -> bool:
        if id(item) in self._seen or len(self._seen) >= _MOST_PARTS:
            return False
        self._seen.add(id(item))
        return True

    def _code(self, code: CodeType) -> Iterator[str]:
        yield code.co_code.hex()
        yield code.co_exceptiontable.hex()
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        yield from self.parts((shape, code.co_names, code.co_varnames, code.co_freevars, code.co_consts))

    def _function(self, function: FunctionType) -> Iterator[str]:
        if not self._first_time(function):
            return
        code = function.__code__
        yield from self._code(code)
        yield from self.parts((function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))))
        used, changed = _names(code)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name not in changed:
                yield name
                yield from self._held(cell)
        if function.__module__ == self._module:
            for name in sorted(used - changed):
                used_item = function.__globals__.get(name)
                if self._ours(used_item) or (name.isupper() and isinstance(used_item, (*_PLAIN, tuple, frozenset))):
                    yield name
                    yield from self.parts(used_item)

    def _held(self, cell: Any) -> Iterator[str]:
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            return
        yield from self.parts(content)

    def _ours(self, item: Any) -> bool:
        """Whether it is a function, a class or a tool of the module that the fingerprint is about."""
        function = getattr(item, "function", item)
        return isinstance(function, FunctionType | type) and function.__module__ == self._module

    def _class(self, kind: type) -> Iterator[str]:
        for base in kind.__mro__:
            if base.__module__ != kind.__module__ or not self._first_time(base):
                continue
            yield f"{base.__module__}.{base.__qualname__}"
            for name, member in sorted(vars(base).items()):
                if name.isupper() and isinstance(member, _PLAIN):
                    yield f"{name} {member!r}"
                for function in _functions_of(member):
                    yield name
                    yield from self._function(function)


def _functions_of(member: Any) -> list[FunctionType]:
    if isinstance(member, property):
        parts = [member.fget, member.fset, member.fdel]
    else:
        parts = [getattr(member, "function", getattr(member, "__func__", member))]
    return [each for each in parts if isinstance(each, FunctionType)]


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """The global names that code uses, inner functions included, and the names of outer variables it assigns to."""
    used, changed = set(code.co_names), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "STORE_DEREF"):
            changed.add(instruction.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more_used, more_changed = _names(inner)
            used |= more_used
            changed |= more_changed
    return used, changed
