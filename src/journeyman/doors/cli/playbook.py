"""``journeyman playbook``: what was learned from runs, on what evidence, and how to undo it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from journeyman.app import Journeyman
from journeyman.core.errors import ConfigurationError
from journeyman.core.playbook import PlaybookBullet, StrategyState, ToolCallingStrategy
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import command, in_store
from journeyman.doors.cli.options import DEFAULT_STORE, By, Json, Limit, Store

WIDTH = 80
MARKS = {"added": "+", "changed": "~", "removed": "-"}
Domain = Annotated[str, typer.Option(metavar="NAME", help="The playbook's domain.")]
AnyDomain = Annotated[str | None, typer.Option(metavar="NAME", help="Only this domain's playbook.")]
Key = Annotated[str, typer.Argument(metavar="ID", help="A strategy, as 'journeyman playbook list' shows it.")]

playbook = typer.Typer(no_args_is_help=True)


@playbook.command("list")
def list_strategies(
    domain: AnyDomain = None,
    state: Annotated[StrategyState | None, typer.Option(help="Only strategies in this state.")] = None,
    limit: Limit = 50,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """What was learned, those with the most successes first, and what to beware of."""

    async def found(app: Journeyman) -> tuple[list[ToolCallingStrategy], list[PlaybookBullet]]:
        domains = [domain] if domain is not None else await app.playbooks.domains()
        books = [app.playbooks[name] for name in domains]
        pitfalls = [item for book in books for item in await book.bullets() if item.section == "Pitfalls"]
        return [item for book in books for item in await book.strategies(state=state)][:limit], pitfalls[:limit]

    strategies, pitfalls = in_store(store, found)
    if as_json:
        return screen.print_json(screen.dumped(strategies))
    told = [] if state is not None else pitfalls  # a pitfall is in no state
    if not strategies and not told:
        return screen.note("nothing was learned so far", f"learn from ended runs: {command(store, 'playbook learn')}")
    table = screen.listing("id", "domain", "state", "good/bad", "tools", "for requests like")
    for item in strategies:
        tools = screen.escaped(" → ".join(item.tool_sequence))
        counts = f"{item.helpful_count}/{item.harmful_count}"
        table.add_row(
            item.id,
            item.domain,
            item.state.value,
            counts,
            tools,
            screen.shortened(item.sub_goal or item.example_task, WIDTH),
        )
    if strategies:
        screen.console().print(table)
    for pitfall in told:
        screen.say(screen.escaped(f"beware  {pitfall.domain}  {pitfall.content}"))
    return None


@playbook.command("show")
def show_strategy(key: Key, domain: AnyDomain = None, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """One strategy: its demonstration, its evidence, and what it changed against runs that went without."""
    found = in_store(store, lambda app: _find(app, key, domain))
    if as_json:
        return screen.print_json(found.model_dump(mode="json"))
    screen.say(Text(screen.escaped(found.content), style="bold"))
    table = screen.fields()
    table.add_row("counted", f"{found.helpful_count} good, {found.harmful_count} bad")
    if isinstance(found, ToolCallingStrategy):
        table.add_row("state", screen.escaped(f"{found.state.value}: {found.state_reason}"))
        labels = ", ".join(f"{count} by {source.value}" for source, count in found.label_sources.items())
        table.add_row("labels", labels or "none")
        table.add_row("effect", found.effect_text)
        table.add_row("of", "everybody" if found.principal_id is None else screen.escaped(found.principal_id))
        table.add_row("from", screen.escaped(", ".join((*found.models, *found.provenance[-3:])) or "nowhere known"))
    screen.console().print(table)
    for line in _demonstration(found):
        screen.say(screen.escaped(line))
    return None


def _demonstration(bullet: PlaybookBullet) -> list[str]:
    if not isinstance(bullet, ToolCallingStrategy) or bullet.demonstration is None:
        return []
    lines = [f"user: {bullet.demonstration.request}"]
    for call in bullet.demonstration.calls:
        lines.append(f"  {screen.call_text(call.tool_name, call.arguments, width=WIDTH)}")
        lines.append(f"  → {call.result}")
    return lines


@playbook.command("learn")
def learn_from(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]…", help="Runs to learn from; none: all new.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Conversations in OpenAI's format: JSON or JSON Lines."),
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="How people would ask for it, where the run is a chain of calls.")
    ] = None,
    domain: Domain = "general",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Learn from runs that have ended since the last time, or from runs and conversations that you choose."""

    async def learn(app: Journeyman) -> int:
        if file is not None:
            return await app.playbooks.learn_file(file, domain=domain)
        if runs:
            for run_id in runs:
                await app.handle(run_id)  # which says so where there is none
            return await app.playbooks[domain].learn(runs, request=request)
        return await app.playbooks.learn()

    count = in_store(store, learn, create=file is not None)
    if as_json:
        return screen.print_json({"learned_from": count})
    screen.say(f"learned from {screen.counted(count, 'run')}")
    return screen.note(f"see: {command(store, 'playbook list')}")


@playbook.command("history")
def list_versions(
    domain: Domain = "general", limit: Limit = 20, store: Store = DEFAULT_STORE, as_json: Json = False
) -> None:
    """The versions of a playbook, newest first."""
    versions = in_store(store, lambda app: app.playbooks[domain].history(limit=limit))
    if as_json:
        return screen.print_json(screen.dumped(versions))
    table = screen.listing("version", "when", "changed", "removed", "why")
    for item in versions:
        why = screen.shortened(item.reason, WIDTH)
        table.add_row(str(item.version), screen.local_time(item.at), str(item.changed), str(item.removed), why)
    return screen.console().print(table)


@playbook.command("diff")
def compare_versions(
    since: Annotated[int, typer.Option(metavar="VERSION", min=0, help="The version to compare from.")],
    to: Annotated[
        int | None, typer.Option(metavar="VERSION", min=0, help="The version to compare with.", show_default="latest")
    ] = None,
    domain: Domain = "general",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """What was added, changed and removed between two versions of a playbook."""
    found = in_store(store, lambda app: app.playbooks[domain].diff(since, to))
    if as_json:
        return screen.print_json(found.model_dump(mode="json"))
    if not found.bullets:
        return screen.note(f"versions {found.since} and {found.to} of {domain!r} say the same")
    for bullet in found.bullets:
        screen.say(Text(screen.escaped(f"{MARKS[bullet.kind]} {bullet.title}  {bullet.id}"), style="bold"))
        for change in bullet.fields:
            sides = {"added": [change.after], "removed": [change.before]}.get(
                bullet.kind, [change.before, change.after]
            )
            screen.say(f"    {change.field}: {' → '.join(screen.shortened(side, WIDTH) for side in sides)}")
    return None


@playbook.command("rollback")
def roll_back(
    to: Annotated[int, typer.Option(metavar="VERSION", min=0, help="The version to go back to.")],
    domain: Domain = "general",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Make a playbook what it was at a version. That is a new version: it can be undone like any other."""
    version = in_store(store, lambda app: app.playbooks[domain].rollback(to=to))
    if as_json:
        return screen.print_json({"version": version})
    return screen.say(f"version {version} of {domain!r} is what version {to} was")


@playbook.command("export")
def export_to(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Gets tool-calling/DOMAIN/strategies.jsonl.")],
    domain: AnyDomain = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Write playbooks as JSON Lines, one strategy to a line."""
    count = in_store(store, lambda app: app.playbooks.export_to(folder, domain=domain))
    screen.say(f"wrote {screen.counted(count, 'bullet')} below {folder}")


@playbook.command("import")
def import_from(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="With tool-calling/DOMAIN/*.jsonl in it.")],
    domain: AnyDomain = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Read playbooks that were written as JSON Lines, by this program or another."""
    count = in_store(store, lambda app: app.playbooks.import_from(folder, domain=domain), create=True)
    screen.say(f"read {screen.counted(count, 'bullet')}")


def _settling(state: StrategyState, text: str) -> None:
    verb = {"active": "activate", "quarantined": "quarantine", "retired": "retire"}[state.value]

    def settle(
        key: Key,
        reason: Annotated[str, typer.Option(help="Why; it is kept in the history.")] = "",
        domain: AnyDomain = None,
        by: By = None,
        store: Store = DEFAULT_STORE,
    ) -> None:
        async def work(app: Journeyman) -> None:
            found = await _find(app, key, domain)
            await app.playbooks[found.domain].settle(key, state, reason=reason, by=by)

        in_store(store, work)
        screen.say(f"{key} is {state.value}")

    settle.__doc__ = text
    playbook.command(verb)(settle)


_settling(StrategyState.ACTIVE, "Offer a strategy to runs, on your word.")
_settling(StrategyState.QUARANTINED, "Offer a strategy to no run until somebody activates it.")
_settling(StrategyState.RETIRED, "Give a strategy up for good.")


async def _find(app: Journeyman, key: str, domain: str | None) -> PlaybookBullet:
    domains: Sequence[str] = [domain] if domain is not None else await app.playbooks.domains()
    for name in domains:
        if (found := await app.playbooks[name].get(key)) is not None:
            return found
    raise ConfigurationError(f"no playbook has a strategy {key!r}: list them with 'journeyman playbook list'")
