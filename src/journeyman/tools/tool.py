"""A specification with a callable: frozen data. Running it under governance is the execution room's job."""

from __future__ import annotations

import inspect
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from pydantic_core import from_json

from journeyman.core.calls import ToolContext
from journeyman.core.data import BACKTRACKING_CHARS, LARGE_TEXT, canonical_json, digest
from journeyman.core.errors import ToolDefinitionError
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification

P = ParamSpec("P")
R = TypeVar("R")

Isolation = Literal["thread", "process"]
Adapter: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
Describe: TypeAlias = Callable[[dict[str, Any], ToolContext], str | Awaitable[str]]
"""From arguments and context to what the call is about, e.g. a task's title, for the person who must agree to it."""
DescribeMethod: TypeAlias = Callable[[Any, dict[str, Any], ToolContext], str | Awaitable[str]]
"""The same for a method, in its class."""
Render: TypeAlias = Callable[[dict[str, Any], Any], str | Awaitable[str]]
"""From arguments and result, both as plain JSON, to what a call came to, as Markdown for people."""
RenderMethod: TypeAlias = Callable[[Any, dict[str, Any], Any], str | Awaitable[str]]
"""The same for a method, in its class."""
Hazard: TypeAlias = Callable[..., bool]
"""Whether arguments, given as a mapping, name something that a person should decide about."""

KNOWN_READS = frozenset({"web_search", "read_file", "get_current_time", "search_memory", "memory_search"})
"""Names that everybody understands as reads; what a tool declares itself wins."""

_ITEMS_AT_A_TIME = 100
_MOST_PROBLEMS = 10
_LONGEST_STEP = 80
_PATTERN_BYTES = 1_000_000
_ATOMS = (str, int, float, type(None))
"""Of a pattern made ready; one from outside may be written to grow without end."""


class ArgumentsError(ValueError):
    """Arguments do not conform to a tool's schema; the text lists every problem for the model."""


@dataclass(frozen=True, slots=True)
class FrozenArguments:
    """Arguments that have passed validation. What is approved, journalled and run is this and nothing else."""

    arguments: dict[str, Any]
    """As plain JSON, defaults included."""
    text: str
    """Their canonical JSON text."""
    values: Mapping[str, Any]
    """As the function takes them."""


class ArgumentSchema(Protocol):
    """How a tool's arguments are checked and brought into the form its function takes."""

    @property
    def context_parameter(self) -> str | None: ...

    @property
    def positional_only(self) -> tuple[str, ...]: ...

    def read(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """JSON text in; the function's values and the same as plain JSON out. Raises ArgumentsError."""


@dataclass(frozen=True, eq=False)
class Tool(Generic[P, R]):
    """Still an ordinary function for whoever calls it; for an agent, a tool."""

    specification: ToolSpecification
    function: Callable[P, R]
    schema: ArgumentSchema
    retries: int = 0
    cache_seconds: float | None = None
    repeatable: bool = False
    isolation: Isolation = "thread"
    hazard: Hazard | None = None
    """Raises the risk of a call to irreversible; a method's gets the instance first."""
    is_async: bool = False
    adapt: Adapter | None = None
    """Puts arguments that were given under other names into the tool's own, before they are checked."""
    unbound: bool = False
    """A method that was decorated in its class: it becomes a usable tool on an instance."""
    describe: Describe | None = None
    render: Render | None = None
    shorten: Callable[[Any], Any] | None = None
    """Makes less of its results, given as plain JSON, before anybody sees them."""
    keeps_labels: bool = False
    """Whether what it stores stays marked as what it is: then it may store what untrusted words say."""
    origin: str = ""
    """The name of the source it comes from, if it does."""
    runs_elsewhere: str = ""
    """What carries out its calls, where that is out of sight, e.g. an MCP server: no approval is bound to its code."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What an operator has set for it, as JSON; ``ToolContext.settings`` of its calls."""
    complete: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """By parameter, what suggests values for it to whoever fills it in by hand."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        if instance is None or not self.unbound:
            return self
        describe, render = (
            hook.__get__(instance, owner) if is_method(hook) else hook  # type: ignore[union-attr]  # a method is not None
            for hook in (self.describe, self.render)
        )
        hazard = None if self.hazard is None else partial(self.hazard, instance)
        bound = self.function.__get__(instance, owner)
        return replace(self, function=bound, describe=describe, render=render, hazard=hazard, unbound=False)

    def __repr__(self) -> str:
        return f"<Tool {self.name!r} {self.specification.signature}>"

    @cached_property
    def name(self) -> str:
        return self.specification.name

    def stamp_origin(self, source: str) -> None:
        """Written once, by the library, before anybody else sees the tool."""
        if not self.origin:
            self.__dict__["origin"] = source

    @property
    def target(self) -> str:
        """Where another process can import this tool from."""
        function = inspect.unwrap(self.function)
        return f"{function.__module__}:{function.__qualname__}"

    @cached_property
    def digest(self) -> str:
        """Fingerprint of the whole specification, the implementation and where they come from."""
        from journeyman.tools.fingerprint import code_fingerprint  # only needed where somebody must be asked

        fields = self.specification.model_dump(mode="json", fallback=lambda value: type(value).__qualname__)
        fields["permissions"] = sorted(fields["permissions"])  # a set has no order
        adapted = "" if self.adapt is None else code_fingerprint(self.adapt)
        parts = [canonical_json(fields), code_fingerprint(self.function), adapted, self.origin]
        return digest(*parts, canonical_json(self.settings)) if self.settings else digest(*parts)

    def approval_digest(self) -> str:
        """What an answer about this tool is bound to: ``digest``, and the user's own modules as they are now."""
        from journeyman.tools.fingerprint import modules_fingerprint

        modules = modules_fingerprint(self.function)
        return digest(self.digest, modules) if modules else self.digest

    @property
    def not_bound_to(self) -> str:
        """What an answer about this tool says nothing of, in words; empty where it is bound to all that runs."""
        from journeyman.tools.fingerprint import loads_by_name

        if self.runs_elsewhere:
            return f"what {self.runs_elsewhere} does with it"
        return "programs that its modules start, or code that they load by name" if loads_by_name(self.function) else ""

    def freeze(self, text: str, given: dict[str, Any] | None = None) -> FrozenArguments:
        """Check arguments given as canonical JSON text. Raises ArgumentsError.

        ``given`` are the same arguments as values: where nothing was added to them, the text is still theirs.
        """
        if self.adapt is not None:
            text, given = self._adapted(text, given)
        values, arguments = self.schema.read(text)
        return FrozenArguments(arguments, text if arguments == given else canonical_json(arguments), values)

    def _adapted(self, text: str, given: dict[str, Any] | None) -> tuple[str, dict[str, Any] | None]:
        if given is None:
            try:
                given = from_json(text, allow_inf_nan=False)
            except ValueError:
                return text, None  # the schema says what is wrong
        if self.adapt is None or not isinstance(given, dict):
            return text, given
        adapted = self.adapt(dict(given))
        return (text, given) if adapted == given else (canonical_json(adapted), adapted)

    def invoke(self, values: Mapping[str, Any], context: ToolContext | None) -> Any:
        """Call the function with checked values; an asynchronous one gives back its coroutine."""
        keywords = dict(values)
        if self.schema.context_parameter is not None:
            keywords[self.schema.context_parameter] = context or ToolContext()
        positional = [keywords.pop(name) for name in self.schema.positional_only if name in keywords]
        return self.function(*positional, **keywords)

    def call_frozen(self, arguments_json: str, context: ToolContext | None = None) -> Any:
        """Check and call in one go: what a child process does."""
        outcome = self.invoke(self.freeze(arguments_json).values, context)
        return collected(outcome) if inspect.isasyncgen(outcome) else outcome

    def with_changes(self, **changes: Any) -> Tool[P, R]:
        """The same function under a changed specification, e.g. another name or version."""
        specification = ToolSpecification.model_validate({**self.specification.model_dump(), **changes})
        return replace(self, specification=specification)

    @classmethod
    def from_specification(
        cls,
        specification: ToolSpecification,
        function: Callable[..., Any],
        *,
        retries: int = 0,
        cache_seconds: float | None = None,
        repeatable: bool = False,
    ) -> Tool[..., Any]:
        """A tool whose schema comes from elsewhere (a document, another server); the function takes keywords."""
        where = f"tool {specification.name!r}"
        if not callable(function):
            raise ToolDefinitionError(f"{where}: {function!r} is not callable")
        check_options(where, retries=retries, cache_seconds=cache_seconds, read_only=specification.read_only)
        return Tool(
            specification=specification,
            function=function,
            schema=ForeignSchema(specification.parameters, where=where),
            retries=retries,
            cache_seconds=cache_seconds,
            repeatable=repeatable,
            is_async=is_async(function),
        )


class ForeignSchema:
    """The gate of tools whose JSON Schema was not made from a Python function; fills in defaults of the top level."""

    context_parameter: str | None = None
    positional_only: tuple[str, ...] = ()

    def __init__(self, parameters: dict[str, Any], *, where: str) -> None:
        import jsonschema_rs

        self._defaults = {
            name: schema["default"]
            for name, schema in parameters.get("properties", {}).items()
            if isinstance(schema, dict) and "default" in schema
        }
        self._plain = all(isinstance(value, _ATOMS) for value in self._defaults.values())
        # A pattern that looks around takes another engine, whose time does not grow evenly with the text.
        for engine in (jsonschema_rs.RegexOptions, jsonschema_rs.FancyRegexOptions):
            self._backtracks = engine is jsonschema_rs.FancyRegexOptions
            try:
                patterns = engine(size_limit=_PATTERN_BYTES)
                self._validator = jsonschema_rs.Draft202012Validator(parameters, pattern_options=patterns)
                return
            except (ValueError, jsonschema_rs.ValidationError) as error:
                if self._backtracks:
                    raise ToolDefinitionError(f"{where}: parameters are not a valid JSON Schema: {error}") from error

    def fits(self, value: Any) -> bool:
        """Whether a value conforms, where nobody needs to know why not."""
        return bool(self._validator.is_valid(value))

    def read(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            given = from_json(text, allow_inf_nan=False)
        except ValueError as error:
            raise ArgumentsError(f"not valid JSON: {error}") from error
        if not isinstance(given, dict):
            raise ArgumentsError(f"must be a JSON object, got {type(given).__name__}")
        if problems := self._problems(given, text):
            raise ArgumentsError("; ".join(problems))
        # Read twice, which is quicker than a copy: the function may change its own values.
        if self._plain:
            return {**self._defaults, **from_json(text)}, {**self._defaults, **given}
        return {**deepcopy(self._defaults), **from_json(text)}, {**deepcopy(self._defaults), **given}

    def _problems(self, given: dict[str, Any], text: str) -> list[str]:
        import jsonschema_rs

        if self._backtracks and len(text) > BACKTRACKING_CHARS:
            return [f"arguments: {len(text):,} characters, at most {BACKTRACKING_CHARS:,} are checked by this schema"]
        if self._validator.is_valid(given):
            return []
        if len(text) <= LARGE_TEXT:
            errors = self._validator.iter_errors(given)
            return [_problem(error) for error in islice(errors, _MOST_PROBLEMS)]
        # All errors are made before the first is handed out, so of much only the first is asked for.
        try:
            self._validator.validate(given)
        except jsonschema_rs.ValidationError as error:
            return [_problem(error)]
        return []


def _problem(error: Any) -> str:
    path = ".".join(str(part)[:_LONGEST_STEP] for part in error.instance_path) or "arguments"
    return f"{path}: {error.message[:200]}"


async def awaited(value: Awaitable[Any]) -> Any:
    """An awaitable in the form that a task takes."""
    return await value


async def collected(items: AsyncGenerator[Any, Any], keep: Callable[[Any], Any] = lambda item: item) -> list[Any]:
    """All that an asynchronous generator gives, as a list of what ``keep`` makes of each item."""
    import asyncio

    kept: list[Any] = []
    async with aclosing(items):
        async for item in items:
            kept.append(keep(item))
            if len(kept) % _ITEMS_AT_A_TIME == 0:
                await asyncio.sleep(0)  # one that never waits would stall everybody, and no timeout would hold
    return kept


def is_method(function: Any) -> bool:
    """Whether it was defined in a class, before there is an instance: its first parameter is the instance."""
    if not inspect.isfunction(function):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    if not owner or owner.endswith("<locals>"):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and first.annotation is inspect.Parameter.empty and first.name in ("self", "cls")


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine or an asynchronous generator."""
    unwrapped = inspect.unwrap(function)
    while hasattr(unwrapped, "func") and not inspect.isfunction(unwrapped):
        unwrapped = unwrapped.func  # functools.partial
    return any(
        asks(called)
        for asks in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        for called in (unwrapped, type(unwrapped).__call__)
    )


def why_not_registrable(item: Tool[..., Any]) -> str | None:
    """Why a tool cannot be in any library; None where it can."""
    if item.unbound:
        return f"{item.name!r} is a method of a class; register it from an instance"
    if item.name in RESERVED_NAMES:
        return f"the name {item.name!r} is reserved; give another with tool(name=...)"
    return None


def check_options(where: str, *, retries: Any, cache_seconds: Any, read_only: bool) -> None:
    """Refuse what no attempt and no cache could work with. Raises ToolDefinitionError."""
    if type(retries) is not int or retries < 0:
        raise ToolDefinitionError(f"{where}: retries must be a whole number, 0 or more, got {retries!r}")
    if cache_seconds is None:
        return
    number = isinstance(cache_seconds, int | float) and not isinstance(cache_seconds, bool)
    if not number or not math.isfinite(cache_seconds) or cache_seconds <= 0:
        raise ToolDefinitionError(
            f"{where}: cache_seconds must be a positive number, got {cache_seconds!r}; leave it out for no cache"
        )
    if not read_only:
        raise ToolDefinitionError(f"{where}: cache_seconds is for tools that only read; declare read_only=True")
