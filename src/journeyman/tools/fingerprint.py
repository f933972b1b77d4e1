"""What a function does, as a short text that changes when the function does: approvals are bound to it.

Taken from what runs and not from files, which may have changed since they were imported. It counts the bytecode (not
where it stands, nor how it is laid out), defaults, the plain values a function closes over, and what it uses of its own
module: functions, classes and constants (``LIKE_THIS``). Lists, dictionaries and other objects are state, which changes
while the program runs and differs between processes: of these only the type counts.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from types import CodeType, FunctionType, MethodType
from typing import Any

_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis))
_MOST_PARTS = 2_000
"""After so many functions and classes no more are looked at."""


def code_fingerprint(function: Callable[..., Any]) -> str:
    """The fingerprint of a function, method, partial or object with ``__call__``."""
    hasher = hashlib.sha256()
    module = getattr(_innermost(function), "__module__", None) or ""
    for part in _Reader(module).parts(function):
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
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
                found = function.__globals__.get(name)
                if self._ours(found) or (name.isupper() and isinstance(found, (*_PLAIN, tuple, frozenset))):
                    yield name
                    yield from self.parts(found)

    def _held(self, cell: Any) -> Iterator[str]:
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            return
        yield from self.parts(content)

    def _ours(self, found: Any) -> bool:
        """Whether it is a function, a class or a tool of the module that the fingerprint is about."""
        function = getattr(found, "function", found)
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
        found = [member.fget, member.fset, member.fdel]
    else:
        found = [getattr(member, "function", getattr(member, "__func__", member))]
    return [each for each in found if isinstance(each, FunctionType)]


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
