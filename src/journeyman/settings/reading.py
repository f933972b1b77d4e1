"""From a file to settings: found, read, laid over by environment variables and options, checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from journeyman.core.data import digest
from journeyman.core.errors import broken_rule, shortened_json
from journeyman.core.model_settings import ModelSettings
from journeyman.sensitive.references import UnresolvedError, literal_secret, references, resolve
from journeyman.settings.document import MOST_BYTES, Document, DocumentError, Position, read_document, without
from journeyman.settings.pasted import PASTED, with_pasted
from journeyman.settings.problems import Key, Problem, SettingsError, key_text, nearest
from journeyman.settings.schema import VARIABLES, VERSION, Settings
from journeyman.settings.values import LATE, SECRET_MARK

DIALECT = "https://json-schema.org/draft/2020-12/schema"


# --- the JSON Schema of the file, as editors use it, and what can be asked of it


@cache
def json_schema() -> dict[str, Any]:
    """The schema, for programs and editors."""
    made = Settings.model_json_schema(by_alias=True)
    return {
        "$schema": DIALECT,
        "title": "journeyman.yaml",
        **{name: value for name, value in made.items() if name != "title"},
    }


def is_secret(key: Key) -> bool:
    """Whether what stands there may stand for a secret."""
    return any(SECRET_MARK in schema for schema in _schemas_at(key))


def _schemas_at(key: Key) -> list[dict[str, Any]]:
    schemas = list(_choices(json_schema()))
    for step in key:
        schemas = [choice for outer in schemas for inner in _schemas_below(outer, step) for choice in _choices(inner)]
    return schemas


def _schemas_below(schema: dict[str, Any], step: str | int) -> Iterator[dict[str, Any]]:
    if isinstance(step, int):
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    if isinstance(inner, dict):
        yield inner


def _choices(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema without references, each of its alternatives."""
    if (reference := schema.get("$ref")) is not None:
        yield from _choices(json_schema()["$defs"][reference.rpartition("/")[2]])
    elif alternatives := schema.get("anyOf", schema.get("oneOf")):
        for inner in alternatives:
            yield from _choices(inner)
    else:
        yield schema


# --- reading


FILE_NAME = "journeyman.yaml"
FILE_VARIABLE = "JOURNEYMAN_CONFIG"
_FREE = ("headers", "oauth", "auth", "env", "global_config", "parameters")
"""Under these a name that says it is a secret is one; most names there are the operator's."""
_ROUNDS = 20
"""How often what is wrong is taken away to look at the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Settings, and where each of their values stands."""

    path: Path
    settings: Settings
    document: Document
    origins: Mapping[Key, str] = field(default_factory=dict)
    """What comes from elsewhere than the file: ``environment variable NAME`` or ``option NAME``."""
    digest: str = ""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def problem(self, key: Key, message: str) -> Problem:
        return Problem(self.place(key), key_text(key), message)

    def place(self, key: Key) -> str:
        """``FILE:LINE:COLUMN``, or what has set the value instead."""
        return self.elsewhere(key) or _at(self.path, self.document.position(key))

    def elsewhere(self, key: Key) -> str:
        """What has set a value, or what is above it, instead of the file; empty where nothing has."""
        above = (self.origins.get(key[:length]) for length in range(len(key), 0, -1))
        return next(filter(None, above), "")

    def secret(self, text: str) -> str:
        """What a text stands for now. Raises UnresolvedError."""
        return resolve(text, self.environ, folder=self.path.parent)

    def model(self, model: str | ModelSettings) -> str | ModelSettings:
        """A model with what its texts stand for now. Raises UnresolvedError."""
        return self.secret(model) if isinstance(model, str) else model.resolved(self.secret)


def find_file(given: Path | str | None, environ: Mapping[str, str] | None = None) -> Path | None:
    """The configuration file: the one that is given, JOURNEYMAN_CONFIG, or journeyman.yaml in the current folder."""
    named = given or (os.environ if environ is None else environ).get(FILE_VARIABLE)
    if named:
        return Path(named)
    here = Path(FILE_NAME)
    return here if here.exists() or here.is_symlink() else None


def read_bytes(path: Path) -> bytes:
    """What a file holds, at most a byte more than it may. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        hint = "; 'journeyman init' writes one" if isinstance(error, FileNotFoundError) else ""
        why = f"cannot be read: {error.strerror}{hint}"
        raise SettingsError([Problem(str(path), "", why)]) from None


def read_settings(
    path: Path | str,
    *,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Loaded:
    """The settings of a file. Options win over environment variables, these over the file, the file over defaults.

    ``options`` are by key, ``{"doors.http.port": 8080}``. Raises SettingsError with every problem.
    """
    loaded, problems = examine(path, environ=environ, options=options)
    if problems or loaded is None:
        raise SettingsError(problems)
    return loaded


def examine(
    path: Path | str,
    *,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    data: bytes | None = None,
) -> tuple[Loaded | None, list[Problem]]:
    """The same, for whoever wants to go on: what is left when everything wrong is taken away, and what that was.

    ``data`` is what was read of the file already.
    """
    file = Path(path)
    environ = dict(os.environ if environ is None else environ)
    try:
        data = read_bytes(file) if data is None else data
    except SettingsError as error:
        return None, list(error.problems)
    try:
        document = _document(data)
    except DocumentError as error:
        return None, [Problem(_at(file, error.position), "", error.message)]
    values = document.value
    if not isinstance(values, dict):
        why = f"a configuration consists of keys and values such as 'version: 1', got {shortened_json(values)}"
        return None, [Problem(_at(file, Position(1, 1)), "", why)]
    values = with_pasted(values)
    pasted = {key: place for key, place in document.positions.items() if key[:1] == (PASTED,)}
    document.positions |= {("mcp", *key[1:]): place for key, place in pasted.items()}
    origins: dict[Key, str] = {}
    for name, key in VARIABLES.items():
        if environ.get(name):
            values, origins[key] = _laid_over(values, key, environ[name]), f"environment variable {name}"
    for dotted, value in (options or {}).items():
        key = tuple(dotted.split("."))
        values, origins[key] = _laid_over(values, key, value), f"option {dotted}"
    settings, wrong = _validated(values)
    blank = Loaded(
        path=file,
        settings=settings or Settings(version=VERSION),
        document=document,
        origins=origins,
        digest=digest(data.hex()),
        environ=environ,
    )
    unknown = [key for key, message in wrong if key and message.startswith("unknown key")]
    written_out = _secrets(values, blank)
    wrong += [(key, why) for key, why in written_out if not any(key[: len(above)] == above for above in unknown)]
    problems = [Problem(_at(file, position), key_text(key), message) for position, key, message in document.problems]
    problems += [blank.problem(key, message) for key, message in wrong]
    return (blank if settings is not None else None), in_order(blank, problems)


def in_order(loaded: Loaded, problems: list[Problem]) -> list[Problem]:
    """Problems in the order of the file, those from elsewhere last."""
    prefix = f"{loaded.path}:"

    def place(problem: Problem) -> tuple[int, int]:
        if not problem.place.startswith(prefix):
            return (2**31, 0)
        line, _, column = problem.place.removeprefix(prefix).partition(":")
        return int(line), int(column or 0)

    return sorted(dict.fromkeys(problems), key=place)


def _at(file: Path, position: Position) -> str:
    return f"{file}:{position.line}:{position.column}"


def _document(data: bytes) -> Document:
    if len(data) > MOST_BYTES:
        raise DocumentError(f"the file has more than {MOST_BYTES:,} bytes", Position(1, 1))
    try:
        document = read_document(data.decode("utf-8-sig"))
        document.source = data
        return document
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError("the file is no UTF-8 text", Position(line, 1)) from None


def _laid_over(values: Any, key: Key, value: Any) -> Any:
    below = values if isinstance(values, dict) else {}
    if len(key) == 1:
        return {**below, key[0]: value}
    return {**below, key[0]: _laid_over(below.get(key[0]), key[1:], value)}


# --- what is wrong


def _validated(values: Any) -> tuple[Settings | None, list[tuple[Key, str]]]:
    """Settings of what is right, and everything that is wrong."""
    problems: list[tuple[Key, str]] = []
    for _ in range(_ROUNDS):
        try:
            return Settings.model_validate(values), problems
        except ValidationError as error:
            wrong = list(_problems(error, values))
        # What only comes of a value that was taken away is no problem of its own.
        known = [key for key, _ in problems]
        problems += [(key, why) for key, why in wrong if not any(other[: len(key)] == key for other in known)]
        before = values
        # From the end: what stands before it in a list keeps its number.
        for key, _message in sorted(wrong, key=lambda item: [str(step).rjust(9) for step in item[0]], reverse=True):
            values = without(values, key)
        if any(key == ("version",) for key, _ in wrong):
            values = {**values, "version": VERSION}
        if values == before:
            return None, problems
    return None, problems


def _problems(error: ValidationError, values: Any) -> Iterator[tuple[Key, str]]:
    for wrong in error.errors(include_url=False, include_input=True):
        key, kind = _existing(wrong["loc"], values), wrong["type"]
        if kind == "missing":
            name = str(wrong["loc"][-1])
            write = f": write '{name}: {VERSION}'" if name == "version" else ""
            above = _existing(wrong["loc"][:-1], values)
            yield (*above, name) if name == "version" else above, f"{name!r} is missing{write}"
        elif kind == "extra_forbidden":
            known = dict.fromkeys(name for above in _schemas_at(key[:-1]) for name in above.get("properties", {}))
            yield key, f"unknown key; {nearest(str(key[-1]), known)}"
        else:
            yield key, _rule(wrong, key)


def _existing(location: tuple[Any, ...], values: Any) -> Key:
    """The way in the file: pydantic also names the kinds of values that it has tried."""
    key: list[str | int] = []
    for step in location:
        if (isinstance(values, dict) and step in values) or (
            isinstance(values, list) and isinstance(step, int) and step < len(values)
        ):
            values = values[step]
        else:
            other = {"rate_limit": "rate_limits", "environments": "environment_overrides"}.get(str(step))
            if isinstance(values, dict) and other in values:
                step, values = other, values[other]
            elif isinstance(values, dict) and location[-1] == step and step not in ("[key]", "str"):
                return (*key, str(step))
            else:
                continue
        key.append(step)
    return tuple(key)


def _rule(wrong: Any, key: Key) -> str:
    rule = broken_rule(wrong)
    expected = wrong.get("ctx", {}).get("expected", "")
    choices = [part.strip("' ") for part in expected.replace(" or ", ", ").split(",")] if expected else []
    given = key[-1] if "[key]" in wrong["loc"] and key else wrong["input"]
    if choices and isinstance(given, str):
        rule += f"; {hint}" if (hint := nearest(given, choices)).startswith("did you mean") else ""
    value = wrong["input"]  # which is left out where it may be a secret
    hidden = isinstance(value, str) and literal_secret(str(key[-1]) if key else "", value) is not None
    if hidden or is_secret(key) or isinstance(value, dict | list):
        return rule.partition(", got ")[0]
    return rule


def _secrets(values: Any, loaded: Loaded, key: Key = ()) -> Iterator[tuple[Key, str]]:
    """Secrets that are written out, and references that lead nowhere. What comes from elsewhere may be a secret."""
    if isinstance(values, dict | list):
        for step, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from _secrets(value, loaded, (*key, step))
        return
    if not isinstance(values, str):
        return
    secret = is_secret(key)
    late = any(schema.get(SECRET_MARK) == LATE for schema in _schemas_at(key))  # only one command looks it up
    if key not in loaded.origins:
        named = next((str(step) for step in reversed(key) if isinstance(step, str)), "")
        free = late or key[:1] == ("model",) or any(step in _FREE for step in key[:-1])
        if (why := literal_secret(named if free else "", values)) is not None:
            hint = "write ${NAME} for an environment variable, or file:PATH"
            yield key, f"{why}; {hint if secret else 'secrets do not belong here: a tool declares those it needs'}"
            return
    if late:
        return
    if secret and references(values):
        try:
            loaded.secret(values)
        except UnresolvedError as error:
            yield key, f"{error}; set it, or put it into a file and write file:PATH"
    elif "${" in values and not any(step in _FREE for step in key):
        where = "store, model, how MCP servers and APIs are reached, and Slack's tokens"
        yield key, f"${{NAME}} is not looked up here, only in {where}"
