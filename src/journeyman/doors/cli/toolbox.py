"""``journeyman tools``: what tools there are, what they take, how they read to a model, and one call of one of them."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from journeyman.app import Tool, ToolLibrary, dump_tools
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.messages import ToolCall
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.core.runs import AgentResponse
from journeyman.core.specification import ToolSpecification
from journeyman.doors.cli import screen
from journeyman.doors.cli.asking import approver
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.loading import assistant, load_library
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.running import follow, principal
from journeyman.doors.cli.storage import store_at, tasks_at_hand
from journeyman.doors.cli.trace import Trace


def list_tools(library: ToolLibrary, *, as_json: bool) -> None:
    specifications = library.specifications()
    if as_json:
        return screen.print_json([item.model_dump(mode="json") for item in specifications])
    _print_listing([(item, None) for item in specifications])
    return None


def search_tools(library: ToolLibrary, text: str, *, limit: int, as_json: bool) -> None:
    found = [(item.specification, score) for item, score in library.search(text, k=limit)]
    if as_json:
        return screen.print_json([{"score": round(score, 3), **item.model_dump(mode="json")} for item, score in found])
    if not found:
        complain(f"no tool shares a word with {text!r}", "'journeyman tools list' shows all of them")
        return None
    _print_listing([(item, score) for item, score in found])
    return None


def export_tools(library: ToolLibrary, names: list[str], *, as_json: bool) -> None:
    specifications = [find(library, name).specification for name in names] if names else library.specifications()
    if as_json:
        return screen.print_json([item.model_dump(mode="json") for item in specifications])
    print(dump_tools(specifications), end="")
    return None


def _print_listing(rows: list[tuple[ToolSpecification, float | None]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    if rows and rows[0][1] is not None:
        table.add_column("score", justify="right", no_wrap=True)
    table.add_column("tool", no_wrap=True)
    table.add_column("risk", no_wrap=True)
    table.add_column("does", overflow="fold")
    for item, score in rows:
        does = screen.visible(screen.first_sentence(item.description))
        marks = "" if item.enabled else " (disabled)"
        marks += " (deprecated)" if item.deprecated else ""
        cells = [Text(item.name, style="cyan"), screen.risk_text(screen.declared_risk(item)), Text(does + marks)]
        table.add_row(*([] if score is None else [f"{score:.1f}"]), *cells)
    screen.console().print(table)


def show_tool(library: ToolLibrary, name: str, *, as_json: bool) -> None:
    item = find(library, name).specification
    if as_json:
        return screen.print_json(item.model_dump(mode="json"))
    console = screen.console()
    console.print(Text(item.name, style="bold cyan"), Text(f"version {item.version} · {item.category}", style="dim"))
    screen.show(console, screen.visible(item.description), indent=2)
    console.print()
    console.print(_facts(item))
    if item.parameters.get("properties"):
        console.print()
        console.print(_parameters(item.parameters))
    console.print(Text("\nsignature", style="bold"))
    screen.show(console, item.signature, indent=2)
    return None


def _facts(item: ToolSpecification) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    risk = screen.declared_risk(item)
    if risk is None:
        table.add_row("risk", "undeclared: a person is asked, unless the policy says otherwise")
    else:
        table.add_row("risk", screen.risk_text(risk))
    kinds = [word for word, holds in (("reads only", item.read_only), ("idempotent", item.idempotent)) if holds]
    table.add_row("effects", ", ".join(kinds) or "changes things; never repeated on its own")
    table.add_row("timeout", f"{item.timeout_seconds:g} s")
    table.add_row("permissions", ", ".join(sorted(item.permissions)) or "none needed")
    if item.tags:
        table.add_row("tags", ", ".join(item.tags))
    if item.deprecated:
        table.add_row("deprecated", item.deprecated if isinstance(item.deprecated, str) else "yes")
    return table


def _parameters(schema: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("parameter", "type", "default"):
        table.add_column(heading, no_wrap=heading == "parameter", overflow="fold")
    table.add_column("meaning", overflow="fold")
    required = schema.get("required", [])
    for name, part in schema["properties"].items():
        described: dict[str, Any] = part if isinstance(part, dict) else {}
        default = "required" if name in required else screen.shortened(described.get("default", "–"), 30)
        kind = described.get("type") or screen.shortened(
            {key: value for key, value in described.items() if key not in ("description", "default", "title")}, 60
        )
        meaning = screen.visible(str(described.get("description", "")))
        table.add_row(Text(name, style="cyan"), str(kind), default, meaning)
    return table


def lint_library(library: ToolLibrary, *, as_json: bool) -> None:
    findings = library.lint()
    if as_json:
        return screen.print_json([asdict(item) for item in findings])
    console = screen.console()
    for item in findings:
        line = Text.assemble((item.tool, "cyan"), "  ", (item.rule, "yellow"), f"  {screen.visible(item.message)}")
        screen.show(console, line)
    told = screen.counted(len(findings), "finding") if findings else "nothing to say"
    screen.show(console, f"{screen.counted(len(library), 'tool')}: {told}")
    return None


def find(library: ToolLibrary, name: str) -> Tool[..., Any]:
    found = library.lookup(name)
    if found is None:
        near = library.nearest(name)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "'journeyman tools list' shows all of them"
        raise WrongUsageError(f"there is no tool {name!r}; {hint}")
    return found


# --- one call


class OneCall:
    """A model that asks for one given call and is content with whatever comes of it."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        return ModelResponse(calls=(self._call,)) if request.step == 1 else ModelResponse(text="done")


def call_tool(
    name: str,
    arguments: dict[str, Any],
    *,
    library: str | None,
    url: str,
    permissions: list[str],
    yes: bool,
    as_json: bool,
    live: bool,
) -> ExitCode:
    """One call, governed like any other: it is a run whose model wants nothing else."""
    store = store_at(url)
    tools = load_library(library, store=store)
    tool = find(tools, name)
    console = screen.console(stderr=True)
    trace = Trace(console, live=live, lines=False)
    given_by = principal(permissions)

    async def whole() -> AgentResponse | None:
        async with tasks_at_hand(store, needed=library is None):
            return await follow(
                assistant(tools.only([name])),
                f"Call {name}",
                library=tools,
                model=OneCall(ToolCall(tool_name=tool.name, arguments=arguments)),
                approver=approver(console, trace, yes=yes),
                principal=given_by,
                trace=trace,
            )

    response = asyncio.run(whole())
    if response is None:
        complain("the call waits for a person")
        return ExitCode.WAITING
    [record] = response.tool_calls
    if as_json:
        print(record.model_dump_json(indent=2))
    else:
        _print_record(record)
    return ExitCode.DONE if record.status is CallStatus.SUCCESS else ExitCode.FAILED


def _print_record(record: ToolCallRecord) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("tool", record.tool_name)
    table.add_row("arguments", screen.pretty(record.arguments))
    table.add_row("status", screen.status_text(record.status))
    table.add_row("risk", screen.risk_text(record.risk) if record.risk else "not graded: the call did not get so far")
    table.add_row("took", f"{screen.duration(record.duration_ms)}, {screen.counted(record.attempts, 'attempt')}")
    if record.error is None:
        table.add_row("result", screen.pretty(record.result))
    else:
        table.add_row("error", screen.visible(f"{record.error.code}: {record.error.message}"))
        for label, text in (("model is told", record.error.recover_action), ("you can", record.error.user_guidance)):
            if text:
                table.add_row(label, screen.visible(text))
    table.add_row("execution id", record.execution_id)
    screen.console().print(table)
