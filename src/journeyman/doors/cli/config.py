"""``journeyman config`` and ``journeyman init``: is the file right, what holds, its schema; and one to begin with."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from journeyman.app import SqlStore
from journeyman.app.assembly import model_named
from journeyman.app.configuration import Configuration, found_file
from journeyman.app.loading import file_of
from journeyman.app.trust import names_in
from journeyman.core.errors import ConfigurationError, JourneymanError
from journeyman.core.protocols import Model
from journeyman.doors.cli import configured, options, screen
from journeyman.doors.cli.loading import load_agent
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.program import program
from journeyman.doors.cli.serve import PROXIES_VARIABLE, live_split, must_be_bindable, served_as, token_file
from journeyman.doors.cli.trust import confirm_file, remember_own, unconfirmed
from journeyman.settings.problems import SettingsError
from journeyman.settings.reading import examine, json_schema, read_settings
from journeyman.settings.schema import Http
from journeyman.settings.showing import setting_values

config = typer.Typer(no_args_is_help=True)

Environment = Annotated[
    str | None, typer.Option(metavar="NAME", help="As if it were development, staging or production.")
]
StoreUrl = Annotated[str | None, typer.Option(metavar="URL", help="As if the store were this.")]
ModelName = Annotated[str | None, typer.Option(metavar="NAME", help="As if the model were this.")]


@config.command("check")
def check(
    environment: Environment = None,
    store: StoreUrl = None,
    model: ModelName = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Start no server, and leave out what only they know.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Whether the file can be used; if not, everything that is wrong, with line and column, and exit code 2.

    Whatever a command would refuse is told: tools, agent and model are looked up, servers are started and asked which
    tools they have. No store is opened, no model asked.
    """
    path, given = _file(), _given(environment, store, model)
    problems: list[Any] = []
    try:
        if configured.is_found():
            _confirm(path, given)
        with printing_to_stderr():
            checked = Configuration(path, options=given)
        configured.use(checked)
        problems = asyncio.run(_wrong_in(checked, offline=offline))
    except SettingsError as error:
        problems = list(error.problems)
    if as_json:
        screen.print_json([{"place": item.place, "key": item.key, "message": item.message} for item in problems])
    elif problems:
        for item in problems:
            screen.write(str(item), stderr=True)
        screen.note(screen.counted(len(problems), "problem"))
    else:
        library, servers = checked.library, len(checked.settings.mcp)
        parts = [screen.counted(len(library), "tool")] + ([screen.counted(servers, "MCP server")] if servers else [])
        screen.say(f"{path}: right; {', '.join(parts)}, environment {checked.settings.environment}")
    raise typer.Exit(2 if problems else 0)


@config.command("show")
def show(
    environment: Environment = None,
    store: StoreUrl = None,
    model: ModelName = None,
    changed: Annotated[bool, typer.Option("--changed", help="Without what is left at its default.")] = False,
    as_json: options.Json = False,
) -> None:
    """What holds, value by value, and where each comes from: default, file and line, environment or option.

    Secrets are shown as they are written in the file, never as what they stand for.
    """
    loaded = read_settings(_file(), options=_given(environment, store, model))
    values = [item for item in setting_values(loaded) if not changed or item.origin != "default"]
    if as_json:
        screen.print_json([{"key": item.key, "value": item.value, "origin": item.origin} for item in values])
        return
    for item in values:
        value = json.dumps(item.value, ensure_ascii=False)
        style = "dim" if item.origin == "default" else ""
        screen.say(Text.assemble((f"{item.key}: {value}", style), (f"  # {item.origin}", "dim")))


@config.command("schema")
def schema() -> None:
    """The file's JSON Schema, for editors: '# yaml-language-server: $schema=FILE' in the first line uses it."""
    screen.write(json.dumps(json_schema(), indent=2, ensure_ascii=False))


def _file() -> Path:
    with configured.naming():
        return found_file(configured.chosen_file())


def _confirm(path: Path, given: dict[str, Any]) -> None:
    """Ask about what a file that was merely found would import; where nobody has agreed, what else is wrong is told."""
    loaded, problems = examine(path, options=given)
    if loaded is None or (problems and unconfirmed(path, names_in(loaded))):
        raise SettingsError(problems)
    confirm_file(loaded, named=False)


async def _wrong_in(checked: Configuration, *, offline: bool) -> list[Any]:
    """What is wrong with servers, and what commands would refuse."""
    if offline:
        return [checked.loaded.problem(key, why) for key, why in _refused(checked, bound=not checked.settings.sources)]
    async with checked.library:
        wrong = checked.server_problems()
        # Tools of a server that cannot be reached are not missed a second time.
        return [*wrong, *(checked.loaded.problem(key, why) for key, why in _refused(checked, bound=not wrong))]


def _refused(checked: Configuration, *, bound: bool) -> Iterator[tuple[tuple[str, ...], str]]:
    """What commands would refuse of a file that is right in itself; ``bound`` where all its tools are known."""
    settings, loaded = checked.settings, checked.loaded
    folder, traces, http = settings.learning.folder, settings.runs.traces, settings.doors.http
    if settings.model is not None:
        key = ("model",) if isinstance(settings.model, str) else ("model", "name")
        for _, why in _tried(key, lambda: _must_be_there(model_named(loaded.model(settings.model or "")))):
            yield ("model", "base_url") if why.startswith("base_url") else key, why
    if settings.agent is not None:
        yield from _tried(("agent",), lambda: _load(settings.agent, checked.database, bound=bound))
    yield from _tried(("runs", "split"), lambda: live_split(settings.runs.split, None))
    file = file_of(checked.database.url or "")
    if file is not None and not file.absolute().parent.is_dir():
        yield ("store",), f"there is no folder {str(file.parent)!r}: make it first"
    for key, place in ((("learning", "folder"), folder), (("runs", "traces"), traces)):
        if place is not None and place.exists() and not place.is_dir():
            yield key, f"{str(place)!r} is no folder"
    if http != Http() or os.environ.get(PROXIES_VARIABLE):  # who never serves needs none of its packages
        yield from _refused_by_serve(http)


def _refused_by_serve(http: Http) -> Iterator[tuple[tuple[str, ...], str]]:
    keys = None if http.oauth is None else http.oauth.jwks
    if keys is not None and "://" not in keys and not Path(keys).is_file():
        yield ("doors", "http", "oauth", "jwks"), f"there is no file {keys!r}"
    if wrong := list(_tried(("doors", "http", "tokens"), lambda: token_file(http.tokens))):
        yield from wrong
        return
    yield from _tried(("doors", "http", "host"), lambda: must_be_bindable(http.host, token_file(http.tokens)))
    from journeyman.doors.http import ServeOptions, tls_context

    tried: dict[str, Callable[[], Any]] = {
        name: partial(ServeOptions, **{name: value}) for name, value in served_as(http).items()
    }
    if http.tls_cert is not None:
        tried["tls_cert"] = partial(tls_context, http.tls_cert, http.tls_key)
    for name, attempt in tried.items():
        yield from _tried(("doors", "http", name), attempt)


def _tried(key: tuple[str, ...], attempt: Callable[[], Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    try:
        attempt()
    except (JourneymanError, WrongUsageError) as error:
        yield key, str(error)


def _load(agent: str | None, store: SqlStore, *, bound: bool) -> None:
    loaded, library = load_agent(agent, None, store=store)
    if bound:
        library.bind(loaded)


def _must_be_there(model: Model) -> None:
    path = getattr(model, "path", None)
    if isinstance(path, Path) and not path.is_file():
        raise ConfigurationError(f"there is no file {str(path)!r}")


def _given(environment: str | None, store: str | None, model: str | None) -> dict[str, str]:
    given = {"environment": environment, "store": store, "model": model}
    return {name: value for name, value in given.items() if value is not None}


SCHEMA = "journeyman.schema.json"
NAMES = ("journeyman.yaml", "my_tools.py", "test_my_tools.py")


def init(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to write; made if need be.")] = Path(),
) -> None:
    """Write journeyman.yaml with comments, a first tool, a test of it, and the schema for editors.

    What is there already is never overwritten: then nothing is written at all.
    """
    kept = files("journeyman.doors.cli") / "templates"
    texts = {name: (kept / f"{name}.txt").read_text(encoding="utf-8") for name in NAMES}
    texts[SCHEMA] = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    if there := [name for name in texts if (folder / name).exists() or (folder / name).is_symlink()]:
        raise WrongUsageError(f"{', '.join(there)} in {str(folder)!r} would be overwritten; choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)
        screen.say(f"wrote {folder / name}")
    remember_own(folder / NAMES[0])
    inside = "" if folder == Path() else f"cd {folder} && "
    started = program(folder=folder)
    steps = [
        (f"{started} config check", "is everything right?"),
        ("python -m unittest", "the test of the tool; pytest runs it, too"),
        (
            f"{started} tools lint --library my_tools",
            "what a model may stumble over, and which tools seem only to read",
        ),
        (f'{started} run "Greet Ada"', "a run with it"),
    ]
    width = max(len(typed) for typed, _ in steps)
    screen.note("what to do next:", *(f"{inside}{typed.ljust(width)}   {does}" for typed, does in steps))
