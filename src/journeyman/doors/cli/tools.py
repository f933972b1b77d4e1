"""``journeyman tools``: what tools there are, what they take, how they read to a model, and one call of one of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from journeyman.app import ToolLibrary
from journeyman.app.chains import OneCall
from journeyman.app.loading import open_at, tools_document
from journeyman.app.service import assistant
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.policy import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import listed_library, load_library
from journeyman.doors.cli.options import ExitCode, RunOptions, WrongUsageError
from journeyman.doors.cli.program import program
from journeyman.doors.cli.run import run_here
from journeyman.doors.cli.screen import print_answer
from journeyman.doors.cli.trace import Trace

ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]

tools = typer.Typer(no_args_is_help=True)


@tools.command("list")
def list_tools(library: options.Library = None, as_json: options.Json = False) -> None:
    """All tools, with their risk."""
    specifications = listed_library(library).specifications()
    if as_json:
        screen.print_json(screen.dumped(specifications))
    else:
        print_tools((item, None) for item in specifications)


@tools.command("show")
def show_tool(name: ToolName, library: options.Library = None, as_json: options.Json = False) -> None:
    """Everything about one tool."""
    item = _find(listed_library(library), name, named=library)
    if as_json:
        screen.print_json(item.model_dump(mode="json"))
    else:
        print_tool(item)


def print_tool(item: ToolSpecification) -> None:
    console = screen.console()
    console.print(Text(item.name, style="bold cyan"), Text(f"version {item.version} · {item.category}", style="dim"))
    screen.show(console, screen.escaped(item.description), indent=2)
    console.print()
    console.print(_properties(item))
    if item.parameters.get("properties"):
        console.print()
        console.print(_parameters(item.parameters))
    console.print(Text("\nsignature", style="bold"))
    screen.show(console, item.signature, indent=2)


@tools.command("search")
def search_tools(
    text: Annotated[str, typer.Argument(help="Words that tell what the tool should do.")],
    library: options.Library = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show at most.")] = 5,
    as_json: options.Json = False,
) -> None:
    """Tools whose name, description or parameters share words with a text, best first."""
    fitting = [(item.specification, score) for item, score in listed_library(library).search(text, k=limit)]
    if as_json:
        screen.print_json([{"score": round(score, 3), **item.model_dump(mode="json")} for item, score in fitting])
    elif not fitting:
        screen.note(f"no tool shares a word with {text!r}", f"all of them: {_list_command(library)}")
    else:
        print_tools(fitting)


@tools.command("lint")
def lint_tools(library: options.Library = None, as_json: options.Json = False) -> None:
    """What a model may stumble over in the tools' descriptions. Advice: the exit code is 0."""
    loaded = listed_library(library)
    findings = loaded.lint()
    if as_json:
        return screen.print_json([asdict(item) for item in findings])
    for item in findings:
        screen.say(Text.assemble((item.tool, "cyan"), "  ", (item.rule, "yellow"), f"  {screen.escaped(item.message)}"))
    count = screen.counted(len(findings), "finding") if findings else "nothing to say"
    screen.say(f"{screen.counted(len(loaded), 'tool')}: {count}")
    return None


@tools.command("export")
def export_tools(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which tools. Without a name, all of them.")
    ] = None,
    library: options.Library = None,
    gram: Annotated[bool, typer.Option("--gram", help="As a gram document, which is the default.")] = False,
    as_json: options.Json = False,
) -> None:
    """Tools as a document that agents in gram files can be written with."""
    if gram and as_json:
        raise WrongUsageError("--gram and --json exclude each other; choose one")
    loaded = listed_library(library)
    specifications = [_find(loaded, name, named=library) for name in names] if names else loaded.specifications()
    if as_json:
        screen.print_json(screen.dumped(specifications))
    else:
        screen.write(tools_document(specifications), end="")


def _list_command(library: str | None) -> str:
    return f"{program()} {shlex.join(['tools', 'list', *(['--library', library] if library else [])])}"


def _find(library: ToolLibrary, name: str, *, named: str | None) -> ToolSpecification:
    tool = library.lookup(name)
    if tool is None:
        near = library.nearest(name)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"all of them: {_list_command(named)}"
        raise WrongUsageError(f"there is no tool {name!r}; {hint}")
    return tool.specification


def print_tools(rows: Iterable[tuple[ToolSpecification, float | None]]) -> None:
    """A listing of tools; with scores, where there are some."""
    items = list(rows)
    table = screen.listing(*(["score"] if items and items[0][1] is not None else []), "tool", "risk", "does")
    for item, score in items:
        head, stop, _ = " ".join(item.description.split()).partition(". ")
        does = screen.escaped(f"{head}." if stop else head)
        marks = "" if item.enabled else " (disabled)"
        marks += " (deprecated)" if item.deprecated else ""
        cells = [Text(item.name, style="cyan"), screen.risk_text(_declared_risk(item)), Text(does + marks)]
        table.add_row(*([] if score is None else [f"{score:>5.1f}"]), *cells)
    screen.console().print(table)


def _declared_risk(item: ToolSpecification) -> RiskLevel | None:
    """What a tool says of itself; None where it says nothing and the policy decides."""
    return item.risk or (RiskLevel.REVERSIBLE if item.read_only else None)


def _properties(item: ToolSpecification) -> Table:
    risk = _declared_risk(item)
    undeclared = "undeclared: a person is asked, unless the policy says otherwise"
    kinds = [word for word, holds in (("reads only", item.read_only), ("idempotent", item.idempotent)) if holds]
    return screen.fields(
        ("risk", undeclared if risk is None else screen.risk_text(risk)),
        ("effects", ", ".join(kinds) or "changes things; never repeated on its own"),
        ("reads", _labels(item.reads, "our own words")),
        ("sends", _labels(item.sends, "nothing leaves")),
        ("timeout", f"{item.timeout_seconds:g} s"),
        ("permissions", ", ".join(sorted(item.permissions)) or "none needed"),
        ("tags", ", ".join(item.tags) or None),
        ("deprecated", "yes" if item.deprecated is True else item.deprecated or None),
    )


def _labels(declared: tuple[str, ...] | None, none: str) -> str:
    if declared is None:
        return "undeclared: where it comes from, and its name, decide"
    return ", ".join(declared) or none


def _parameters(schema: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("parameter", "type", "default", "meaning"):
        table.add_column(heading, no_wrap=heading == "parameter", overflow="fold")
    required = schema.get("required", [])
    for name, part in schema["properties"].items():
        described: dict[str, Any] = part if isinstance(part, dict) else {}
        default = "required" if name in required else screen.shortened(described.get("default", "–"), 30)
        kind = described.get("type") or screen.shortened(
            {key: value for key, value in described.items() if key not in ("description", "default", "title")}, 60
        )
        meaning = screen.escaped(str(described.get("description", "")))
        table.add_row(Text(name, style="cyan"), str(kind), default, meaning)
    return table


# --- one call


@tools.command("call")
@options.taking("name args library permission yes store as_json verbose debug log_level")
def call_tool(
    given: RunOptions,
    *,
    name: ToolName,
    args: Annotated[str, typer.Option(metavar="JSON", help="The arguments, as a JSON object.")] = "{}",
) -> None:
    """One call, governed like any other, and what it came to. Exit code 1 when it did not succeed."""
    library = given.library
    arguments = options.json_object(args, option="--args")
    database = open_at(given.store)
    loaded = load_library(library, store=database)
    # The call is a run in which nothing else is planned, so that it is governed and recorded as any other.
    listed = listed_library(library)
    name = _find(listed, name, named=library).name
    trace = Trace(screen.console(stderr=True), live=given.live, lines=False)
    response = run_here(
        assistant(listed.only([name])),
        f"Call {name}",
        given,
        store=database if library is None else None,
        tools=loaded,
        planner=OneCall(name, arguments),
        trace=trace,
    )
    if response is None:
        screen.note("the call waits for a person")
        raise typer.Exit(ExitCode.WAITING)
    [record] = response.tool_calls
    if given.as_json:
        screen.print_json(record)
    else:
        print_answer(response.answer)
        if given.verbose:
            _print_record(record)
        else:
            facts = [screen.duration(record.duration_ms), *([] if record.error is None else [record.error.code])]
            called = screen.status_text(record.status, record.tool_name)
            trace.console.print(Text.assemble(called, (f" · {' · '.join(facts)}", "dim")), soft_wrap=True)
    raise typer.Exit(ExitCode.DONE if record.status is CallStatus.SUCCESS else ExitCode.FAILED)


def _print_record(record: ToolCallRecord) -> None:
    error = record.error
    table = screen.fields(
        ("tool", record.tool_name),
        ("arguments", screen.pretty(record.arguments)),
        ("status", screen.status_text(record.status)),
        ("risk", screen.risk_text(record.risk) if record.risk else "not graded: the call did not get so far"),
        ("took", f"{screen.duration(record.duration_ms)}, {screen.counted(record.attempts, 'attempt')}"),
        ("result", screen.pretty(record.shown) if error is None else None),
        ("error", f"{error.code}: {error.message}" if error else None),
        ("model is told", (error and error.recover_action) or None),
        ("you can", (error and error.user_guidance) or None),
        ("execution id", record.execution_id),
    )
    screen.console().print(table)
