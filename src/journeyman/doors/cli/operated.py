"""Commands made from the table of operations: options and help from what an operation takes and says of itself, and
JSON or a table of what it returns. A command writes down only what is its own: columns, and words for a person."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic_core import PydanticUndefined
from rich.text import Text

from journeyman.app import ToolLibrary
from journeyman.app.operations.table import Operation, Page
from journeyman.core.data import safe_json
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import at_desk, command, load_library
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, Json, Library, Store, WrongUsageError
from journeyman.doors.cli.program import must_be_a_person

if TYPE_CHECKING:
    from journeyman.app import Report
    from journeyman.replay.report import ReplayReport

NOT_TYPED = ("offset", "cursor", "top_k", "arguments_json")
"""Other ways to say what another value says."""
IDS = "As the list shows it."
UNSAID: Any = PydanticUndefined

View = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Typed:
    """How a value is typed, where its name, its type and its description do not say it."""

    flag: str | None = None
    metavar: str | None = None
    help: str | None = None
    default: Any = UNSAID
    """``UNSAID`` where it is the operation's; or, of one that the operation has told the rest of, must be given."""
    read: Callable[..., Any] | None = None
    """From the text to the value; it is told the ``option``, to name it where the text is wrong."""
    argument: bool = False
    """Typed without an option's name although it could be left out, or could have one."""
    kind: Any = None
    name: str = ""
    """Of the value of an operation, or of the object that it takes."""
    least: int | None = None

    @property
    def is_argument(self) -> bool:
        return self.argument or (self.default is UNSAID and self.flag is None)

    @property
    def shown_name(self) -> str:
        if self.is_argument:
            return self.metavar or ("ID" if self.name.endswith(("id", "key")) else self.name.upper())
        return self.flag or f"--{self.name.replace('_', '-')}"

    def parameter(self) -> Parameter:
        required = self.default is UNSAID
        said: dict[str, Any] = {"help": self.help, "metavar": self.metavar}
        if int in (self.kind, *get_args(self.kind)):
            said["min"] = self.least
        if required or self.default in (None, ""):
            said["show_default"] = False
        if self.is_argument:
            said |= {"help": self.help or (IDS if self.shown_name == "ID" else None), "metavar": self.shown_name}
        declared = typer.Argument(**said) if self.is_argument else typer.Option(self.shown_name, **said)
        default = Parameter.empty if required else self.default
        return Parameter(self.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[self.kind, declared])

    def value(self, given: Any) -> Any:
        return given if given is None or self.read is None else self.read(given, option=self.shown_name)


SPELLED: Mapping[str, Typed] = {
    "after": Typed(metavar="ID", help="Only those after this one in the list."),
    "domain": Typed(metavar="NAME"),
    "limit": Typed(help="How many to show at most."),
    "older_than": Typed("--older-than", metavar="SPAN", help="How old: 30d, 12h…", read=options.seconds),
    "principal": Typed(metavar="ID"),
    "reason": Typed(metavar="TEXT"),
    "session_id": Typed("--session", metavar="NAME"),
}
"""What is typed in the same way wherever it is taken."""


@dataclass(frozen=True, slots=True)
class Call:
    """What was typed."""

    store: str
    given: Mapping[str, Any]
    narrowed: bool
    """Whether a filter leaves something out."""
    tools: ToolLibrary | None

    def command(self, words: str, *values: str) -> str:
        return command(self.store, words, *values)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as a table: which field of the result has its rows, and what stands in each column of one."""

    rows: str
    columns: Mapping[str, str | Callable[[Any], str | Text]]
    """A cell is an attribute of the row, or made from it."""
    empty: str

    def __call__(self, result: Any, call: Call) -> None:
        rows = getattr(result, self.rows)
        if not rows:
            return screen.note("nothing fits" if call.narrowed else self.empty)
        table = screen.listing(*self.columns)
        for row in rows:
            cells = (getattr(row, it) if isinstance(it, str) else it(row) for it in self.columns.values())
            table.add_row(*(cell if isinstance(cell, Text) else screen.escaped(str(cell)) for cell in cells))
        return screen.console().print(table)


def operated(
    group: typer.Typer,
    words: str,
    operation: Operation[..., Any],
    *,
    typed: Mapping[str, Typed] | None = None,
    by: Any = None,
    library: Any = None,
    rows: str | None = None,
    person: bool = False,
    create: bool = False,
    check: Callable[[Mapping[str, Any]], None] | None = None,
    fails: Callable[[Any], object] | None = None,
) -> Callable[[View], View]:
    """Make a command of what shows a result to a person; the last of ``words`` is its name in the group.

    What the view takes beyond the result and the call is typed as well, and its docstring tells what is special here.
    ``rows`` is the field of a result that --json prints; ``by`` and ``library`` are options that say who does it and
    with which tools, the usual ones where the ``Library`` of all commands names none. Only a ``person`` may do it.
    ``check`` refuses values that do not go together; ``fails`` tells for which results the exit code is 1.
    """
    values = list(_values(operation, typed or {}))

    def made(view: View) -> View:
        own = [] if isinstance(view, Listing) else list(signature(view, eval_str=True).parameters.values())[2:]
        printed = view.rows if isinstance(view, Listing) else rows
        views_json = any(item.name == "as_json" for item in own)

        def work(store: str, **given: Any) -> None:
            if person:
                must_be_a_person()
            if check is not None:
                check(given)
            arguments = _arguments(operation, values, given)
            named, who = given.get("library"), given.get("by")
            tools = load_library(named) if named is not None or library is Library else None
            result = at_desk(store, lambda desk: operation(desk, **arguments), by=who, library=tools, create=create)
            narrowed = any(given[item.name] not in (item.default, None) for item in values if item.name != "limit")
            call = Call(store, given, narrowed, tools)
            if given.get("as_json") and not views_json:
                screen.print_json(result if printed is None else screen.dumped(getattr(result, printed)))
            else:
                view(result, call, **{item.name: given[item.name] for item in own})
            if isinstance(result, Page) and result.next_after is not None:
                more = f"{call.command(words)} --after {shlex.quote(result.next_after)}"
                screen.note(f"{result.total:,} in all; those after these: {more}")
            if fails is not None and fails(result):
                raise typer.Exit(ExitCode.FAILED)

        has_json = Json if operation.output is not type(None) and not own else None  # a view's own may be a file
        shared = [("by", None, by), ("library", None, library), ("store", DEFAULT_STORE, Store)]
        parameters = [
            *(item.parameter() for item in values),
            *own,
            *(
                Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
                for name, default, kind in (*shared, ("as_json", False, has_json))
                if kind is not None
            ),
        ]
        more = None if isinstance(view, Listing) else getdoc(view) or getdoc(operation.work)
        work.__doc__ = f"{operation.summary}." + (f"\n\n{more}" if more else "")
        group.command(words.rpartition(" ")[2])(options.declared(work, parameters))
        return view

    return made


def _plain(kind: Any) -> Any:
    """A type as typer knows it: without what pydantic checks."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _plain(get_args(kind)[0])
    if origin in (Union, UnionType):
        return Union[tuple(map(_plain, get_args(kind)))]  # noqa: UP007  # made of what there is
    return list[_plain(get_args(kind)[0])] if origin is list else kind  # type: ignore[misc]  # made, too


def _values(operation: Operation[..., Any], typed: Mapping[str, Typed]) -> Iterator[Typed]:
    for item in operation.inputs:
        fields = item.kind.model_fields.items() if item.is_body else [(item.name, item.info)]
        for name, info in fields:
            if name in NOT_TYPED:
                continue
            how = typed.get(name, SPELLED.get(name, Typed()))
            default = how.default
            if default is UNSAID:
                default = info.default if item.is_body else item.default
                if default is Parameter.empty:
                    default = UNSAID
                elif item.is_body and info.default_factory is not None:
                    default = None
            kind = how.kind
            if kind is None and how.read is not None:
                kind = str if default is UNSAID else str | None
            yield replace(
                how,
                name=name,
                kind=kind or _plain(info.annotation if item.is_body else item.kind),
                default=default,
                help=how.help or info.description,
                least=next((int(mark.ge) for mark in info.metadata if getattr(mark, "ge", None) is not None), None),
            )


def _arguments(operation: Operation[..., Any], values: list[Typed], given: Mapping[str, Any]) -> dict[str, Any]:
    """What the operation is called with. Raises WrongUsageError."""
    read = {item.name: item.value(given[item.name]) for item in values}
    arguments = {item.name: read[item.name] for item in operation.inputs if item.name in read}
    for item in operation.inputs:
        if item.is_body:
            given_fields = {name: read[name] for name in item.kind.model_fields if read.get(name) is not None}
            try:
                arguments[item.name] = item.kind(**given_fields)
            except ValidationError as error:
                first = error.errors()[0]
                place = next((f"{value.shown_name}: " for value in values if value.name in first["loc"]), "")
                raise WrongUsageError(place + first["msg"].removeprefix("Value error, ")) from None
    return arguments


# --- reports of experiments and replays, which are printed, written as Markdown, or as a page

Html = Annotated[Path | None, typer.Option(metavar="PATH", help="Also write the report with plots, as one page.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the report as Markdown on stdout, and nothing else.")]


def check_output(html: Path | None, *, markdown: bool, as_json: bool) -> None:
    if markdown and as_json:
        raise WrongUsageError("--markdown and --json both want stdout for themselves; give one of them")
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise WrongUsageError(f"--html {str(html)!r} cannot be written: give a file in a folder that is there")


R = TypeVar("R", "Report", "ReplayReport")


def present(report: R, printed: Callable[[R], None], *, html: Path | None, markdown: bool, as_json: bool) -> ExitCode:
    """Print a report as it is wanted, and write its page."""
    check_output(html, markdown=markdown, as_json=as_json)
    if as_json:
        screen.write(safe_json(report.to_json()))
    elif markdown:
        screen.write(report.to_markdown(), end="")
    else:
        printed(report)
    if html is None:
        return ExitCode.DONE
    try:
        report.to_html(html)
    except OSError as error:
        screen.note(f"the page could not be written: {error}")
        return ExitCode.FAILED
    screen.note(f"wrote {html}")
    return ExitCode.DONE
