"""Options that several commands share, what is read from them, and the exit codes."""

from __future__ import annotations

import getpass
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

import typer

from journeyman.app.observing import JsonFormatter
from journeyman.core.content import Medium
from journeyman.core.errors import InvalidDataError
from journeyman.core.policy import Principal
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.core.storing import Origin

LOG_VARIABLE = "JOURNEYMAN_LOG"
STORE_VARIABLE = "JOURNEYMAN_STORE"
DEFAULT_STORE = "sqlite:///journeyman.db"


class WrongUsageError(Exception):
    """What was typed cannot be meant; the message says what to type instead."""


class _Named:
    """Whether the user has named the store of this command."""

    store = False


def note_store(context: typer.Context, option: typer.CallbackParam, value: str | None) -> str | None:
    source = context.get_parameter_source(option.name or "")
    _Named.store = source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
    return value


def store_is_named() -> bool:
    """Whether --store, JOURNEYMAN_STORE, or a configuration file that was itself named says where runs are kept."""
    from journeyman.doors.cli.configured import file_settings, is_found, stored

    if _Named.store or os.environ.get(STORE_VARIABLE):
        return True
    loaded = None if is_found() else file_settings()
    return loaded is not None and stored(loaded) is not None


class ExitCode(IntEnum):
    """How a command ended. Ctrl-C gives 130, as everywhere."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
    WAITING = 3

    @classmethod
    def of(cls, response: AgentResponse) -> ExitCode:
        """What became of a run, for whoever called the program: an answer that nothing was done is no success."""
        if response.status is RunStatus.COMPLETED:
            return cls.FAILED if response.outcome == "not" else cls.DONE
        return cls.WAITING if response.status.waiting else cls.FAILED


LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
"""From how serious a record is written."""


def start_logs(level: LogLevel | None) -> LogLevel | None:
    """Send the package's log records to stderr, a JSON object a line."""
    if level is not None:
        _log("journeyman", level.upper(), JsonFormatter())
    return level


def _log(name: str, level: str, form: logging.Formatter) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(form)
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    logger.setLevel(level)


def user_name() -> str:
    """Who runs the program."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run under a number that has no name
        return "somebody"


AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="MODULE:NAME|FILE.gram[:NAME]",
        help="An Agent; MODULE is a module or a Python file. Without --library it finds its tools in its own module, "
        "or, described in a gram file, among those that come with Journeyman. Without --agent, an assistant with the "
        "library's tools.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
Library = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE[:NAME]",
        help="A ToolLibrary, or a module or Python file: every tool in it; or 'local': the files of the current "
        "folder, and notes; or 'research': the web, these files and your memory; or 'slack': the bot's channels. "
        "Without it, the tools over the tasks in the store.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="openai:NAME, ollama:NAME, http://HOST:PORT/v1#NAME, gguf:PATH or embedded. Without it, the agent's own, "
        "else what 'journeyman doctor' finds here.",
    ),
]
Store = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar=STORE_VARIABLE,
        callback=note_store,
        help="Where runs are kept: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
    ),
]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who decides. Without it, your user name here.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Without it, to stdout.")]
Yes = Annotated[
    bool, typer.Option("--yes", help="Approve everything without asking. Dangerous: irreversible calls run, too.")
]
Permissions = Annotated[
    list[str] | None,
    typer.Option("--permission", metavar="NAME", help="A permission you have, e.g. orders:write. May be repeated."),
]
Log = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        envvar=LOG_VARIABLE,
        help="Write structured logs to stderr, from debug, info, warning or error on.",
        callback=start_logs,
    ),
]


def show_tracebacks(wanted: bool) -> bool:
    """Write where tools fail, and what their exceptions say, to stderr as plain text."""
    if wanted:
        _log("journeyman.execution", "DEBUG", logging.Formatter("%(message)s"))
    return wanted


Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also show what calls returned, as it is, and what the model was told.")
]
Debug = Annotated[
    bool, typer.Option("--debug", help="Show the whole traceback of a tool that fails.", callback=show_tracebacks)
]


@dataclass(frozen=True)
class RunOptions:
    """What a command that has to do with runs was given: the one declaration of the options that they share."""

    store: Store = DEFAULT_STORE
    agent: AgentName = None
    library: Library = None
    model: Model = None
    permission: Permissions = None
    session: str | None = None
    yes: Yes = False
    as_json: Json = False
    verbose: Verbose = False
    debug: Debug = False
    log_level: Log = None
    principal: Principal | None = None
    """Who runs the program, where the command takes permissions."""
    folder: str = ""
    """Stands for the current one in what a session remembers."""
    origin: Origin | None = None
    """What is kept with the runs, so that other commands find the same agent and tools."""
    repeated: tuple[str, ...] = ()
    """The options that commands which go on with a run must be given again."""

    @property
    def live(self) -> bool:
        """Whether a terminal may redraw what is under way, which log records on stderr would tear apart."""
        return self.log_level is None and not self.debug


def taking(order: str, **other: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that takes ``RunOptions``, and what it declares itself.

    ``order`` names all that can be typed, as the help shows it; ``other`` declares a shared option in another way.
    """

    def made(work: Callable[..., None]) -> Callable[..., None]:
        own = dict(list(signature(work, eval_str=True).parameters.items())[1:])
        kinds = get_type_hints(RunOptions, include_extras=True) | other
        parameters = [
            own.get(name)
            or Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=None if name in other else getattr(RunOptions, name),
                annotation=kinds[name],
            )
            for name in order.split()
        ]

        def command(**given: Any) -> None:
            said = {item.name: given.get(item.name, item.default) for item in parameters}
            mine = {name: said.pop(name) for name in own}
            who = user_with(said["permission"]) if "permission" in said else None
            work(RunOptions(**said, principal=who), **mine)

        command.__doc__ = work.__doc__
        return declared(command, parameters)

    return made


def declared(command: Callable[..., None], parameters: list[Parameter]) -> Callable[..., None]:
    """The function with these parameters, for typer, which reads them there."""
    signed: Any = command  # functions may have one, whatever their type says
    signed.__signature__ = Signature([item.replace(kind=Parameter.KEYWORD_ONLY) for item in parameters])
    command.__annotations__ = {item.name: item.annotation for item in parameters}
    return command


def user_with(permissions: list[str] | None) -> Principal:
    """Who runs the program, with the permissions they say they have."""
    try:
        return Principal(user_name(), permissions=permissions or ())
    except InvalidDataError as error:
        raise WrongUsageError(f"--permission: {error.problems[0][1]}") from None


def default_store() -> str:
    """Where runs are kept when no --store says so."""
    if (given := os.environ.get(STORE_VARIABLE)) is not None and given:
        return given
    from journeyman.doors.cli.configured import file_settings, stored

    loaded = file_settings()
    return (None if loaded is None else stored(loaded)) or DEFAULT_STORE


def task_text(text: str, *, option: str = "TASK") -> str:
    """A task as it was typed, which must say something."""
    if not text.strip():
        raise WrongUsageError(f"a task must say what to do, {text!r} is blank")
    return text


def attached(file: Path | str, *, option: str = "--attach") -> Medium:
    """A file that goes with a message."""
    try:
        return Medium.from_path(file)
    except OSError as error:
        raise WrongUsageError(f"{option} {str(file)!r} cannot be read: {error.strerror}") from None
    except InvalidDataError as error:
        raise WrongUsageError(f"{option} {str(file)!r}: {error.problems[0][1]}") from None


def seconds(text: str, *, option: str) -> float:
    """A duration such as 90s, 30m, 12h, 7d or 2w."""
    from journeyman.settings.values import seconds_of

    try:
        return float(seconds_of(text))
    except ValueError:
        raise WrongUsageError(f"{option} {text!r} isn't a duration; write e.g. 90s, 30m, 12h, 7d or 2w") from None


def json_value(text: str, *, option: str, hint: str = "a text needs its quotes: '\"sent\"'") -> Any:
    """Any JSON that an option gives."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongUsageError(f"{option} {text!r} is not JSON ({error}); {hint}") from None


def json_object(text: str, *, option: str) -> dict[str, Any]:
    """The JSON object that an option gives."""
    hint = """write e.g. '{"path": "a.txt"}'"""
    value = json_value(text, option=option, hint=hint)
    if not isinstance(value, dict):
        raise WrongUsageError(f"{option} {text!r} is not a JSON object; {hint}")
    return value
