"""``journeyman playbook``: what was learned from runs, on what evidence, and how to undo it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from journeyman.app.desk import Desk
from journeyman.app.loading import open_at
from journeyman.app.operations import playbooks as operations
from journeyman.app.practise import Practice, practise
from journeyman.core.errors import ConfigurationError
from journeyman.core.playbook import PlaybookBullet, PlaybookDiff, ToolCallingStrategy
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import at_desk, command, load_agent, load_library
from journeyman.doors.cli.operated import Call, Listing, Typed, operated
from journeyman.doors.cli.options import DEFAULT_STORE, By, Json, RunOptions, Store

WIDTH = 80
MARKS = {"added": "+", "changed": "~", "removed": "-"}
Domain = Annotated[str, typer.Option(metavar="NAME", help="The playbook's domain.")]
AnyDomain = Annotated[str | None, typer.Option(metavar="NAME", help="Only this domain's playbook.")]
IN_DOMAIN = {"domain": Typed(metavar="NAME", help="The playbook's domain.", default="general")}
Key = Annotated[str, typer.Argument(metavar="ID", help="A strategy, as 'journeyman playbook list' shows it.")]

playbook = typer.Typer(no_args_is_help=True)


STRATEGIES = Listing(
    "strategies",
    {
        "id": "id",
        "domain": "domain",
        "state": lambda item: item.state.value,
        "good/bad": lambda item: f"{item.helpful_count}/{item.harmful_count}",
        "tools": lambda item: " → ".join(item.tool_sequence),
        "for requests like": lambda item: screen.shortened(item.sub_goal or item.example_task, WIDTH),
    },
    empty="",
)


@operated(playbook, "playbook list", operations.list_strategies, rows="strategies")
def show_strategies(learned: operations.Strategies, call: Call) -> None:
    if not learned.strategies and not learned.pitfalls:
        learn = call.command("playbook learn")
        return screen.note("nothing was learned so far", f"learn from ended runs: {learn}")
    if learned.strategies:
        STRATEGIES(learned, call)
    for pitfall in learned.pitfalls:
        screen.say(screen.escaped(f"beware  {pitfall.domain}  {pitfall.content}"))
    return None


@operated(playbook, "playbook show", operations.find_strategy)
def show_strategy(strategy: PlaybookBullet, _: Call) -> None:
    """Also what it changed against runs that went without."""
    screen.say(Text(screen.escaped(strategy.content), style="bold"))
    rows = [("counted", f"{strategy.helpful_count} good, {strategy.harmful_count} bad")]
    if isinstance(strategy, ToolCallingStrategy):
        labels = ", ".join(f"{count} by {source.value}" for source, count in strategy.label_sources.items())
        rows += [
            ("state", f"{strategy.state.value}: {strategy.state_reason}"),
            ("labels", labels or "none"),
            ("effect", strategy.effect_text),
            ("of", strategy.principal_id or "everybody"),
            ("from", ", ".join((*strategy.models, *strategy.provenance[-3:])) or "nowhere known"),
        ]
    screen.console().print(screen.fields(*rows))
    if isinstance(strategy, ToolCallingStrategy) and (shown := strategy.demonstration) is not None:
        screen.say(screen.escaped(f"user: {shown.request}"))
        for call in shown.calls:
            screen.say(f"  {screen.call_text(call.tool_name, call.arguments, width=WIDTH)}")
            screen.say(screen.escaped(f"  → {call.result}"))


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
    own_values: Annotated[
        bool, typer.Option("--own-values", help="Show later runs the values of these, where they are else made up.")
    ] = False,
    domain: Domain = "general",
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Learn from runs that have ended since the last time, or from runs and conversations that you choose."""

    async def learn(desk: Desk) -> int:
        playbooks = desk.app.playbooks
        if file is not None:
            return await playbooks.learn_file(file, domain=domain, own_values=own_values)
        if runs:
            for run_id in runs:
                await desk.app.handle(run_id)  # which says so where there is none
            return await playbooks[domain].learn(runs, request=request, own_values=own_values)
        return await playbooks.learn()

    count = at_desk(store, learn, create=file is not None)
    if as_json:
        return screen.print_json({"learned_from": count})
    screen.say(f"learned from {screen.counted(count, 'run')}")
    return screen.note(f"see: {command(store, 'playbook list')}")


@playbook.command("practise")
@options.taking("requests sandbox rounds most domain agent library model permission store as_json debug log_level")
def practise_requests(
    given: RunOptions,
    *,
    requests: Annotated[
        list[str] | None, typer.Argument(metavar="[REQUEST]…", help="What to try; none: what was asked before.")
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE[:NAME]", help="The tools over something that may be changed: nobody is asked there."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=20, help="How often; each is told what those before taught.")] = 2,
    most: Annotated[int, typer.Option(min=1, max=500, help="Requests of a round.")] = 20,
    domain: Domain = "general",
) -> None:
    """Try earlier requests again, those that failed first, and learn: for when the machine has nothing else to do.

    Without --sandbox only tools that read are there, and only pitfalls are kept.
    """

    async def work(desk: Desk) -> Practice:
        playbooks = desk.app.playbooks
        agent, tools = load_agent(given.agent, given.library, store=store, model=given.model)
        tried = requests or await playbooks.to_practise(domain, principal=given.principal, most=most)
        if not tried:
            raise ConfigurationError(f"nothing was asked in {domain!r} yet: name a request to practise")
        return await practise(
            playbooks[domain],
            agent,
            tried[:most],
            sandbox=None if sandbox is None else load_library(sandbox, store=store),
            rounds=rounds,
            library=tools,
            principal=given.principal,
        )

    store = open_at(given.store)
    made = at_desk(given.store, work, create=bool(requests))
    if given.as_json:
        return screen.print_json(made)
    good = f", {' then '.join(map(str, made.good))} good" if made.sandbox else ", only what to beware of was kept"
    screen.say(f"tried {screen.counted(made.requests, 'request')} {screen.counted(made.rounds, 'time')}{good}")
    return screen.note(f"see: {command(given.store, 'playbook list')}")


operated(playbook, "playbook history", operations.list_versions, typed=IN_DOMAIN)(
    Listing(
        "history",
        {
            "version": "version",
            "when": lambda item: screen.local_time(item.at),
            "changed": "changed",
            "removed": "removed",
            "why": lambda item: screen.shortened(item.reason, WIDTH),
        },
        empty="there is no version yet",
    )
)
SIDES = {
    **IN_DOMAIN,
    "since": Typed("--since", metavar="VERSION"),
    "to": Typed("--to", metavar="VERSION"),
}


@operated(playbook, "playbook diff", operations.compare_versions, typed=SIDES)
def show_changes(diff: PlaybookDiff, call: Call) -> None:
    if not diff.bullets:
        screen.note(f"versions {diff.since} and {diff.to} of {call.given['domain']!r} say the same")
    for bullet in diff.bullets:
        screen.say(Text(screen.escaped(f"{MARKS[bullet.kind]} {bullet.title}  {bullet.id}"), style="bold"))
        for change in bullet.fields:
            sides = {"added": [change.after], "removed": [change.before]}.get(
                bullet.kind, [change.before, change.after]
            )
            screen.say(f"    {change.field}: {' → '.join(screen.shortened(side, WIDTH) for side in sides)}")


@operated(playbook, "playbook rollback", operations.roll_back, typed=SIDES)
def say_rolled_back(book: operations.PlaybookView, call: Call) -> None:
    """That is a new version: it can be undone like any other."""
    screen.say(f"version {book.version} of {book.domain!r} is what version {call.given['to']} was")


@playbook.command("export")
def export_to(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Gets tool-calling/DOMAIN/strategies.jsonl.")],
    domain: AnyDomain = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Write playbooks as JSON Lines, one strategy to a line."""
    count = at_desk(store, lambda desk: desk.app.playbooks.export_to(folder, domain=domain))
    screen.say(f"wrote {screen.counted(count, 'bullet')} below {folder}")


@playbook.command("import")
def import_from(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="With tool-calling/DOMAIN/*.jsonl in it.")],
    domain: AnyDomain = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Read playbooks that were written as JSON Lines, by this program or another."""
    count = at_desk(store, lambda desk: desk.app.playbooks.import_from(folder, domain=domain), create=True)
    screen.say(f"read {screen.counted(count, 'bullet')}")


def _state_command(verb: str, state: Literal["active", "quarantined", "retired"], text: str) -> None:
    def change(
        key: Key,
        reason: Annotated[str, typer.Option(help="Why; it is kept in the history.")] = "",
        domain: AnyDomain = None,
        by: By = None,
        store: Store = DEFAULT_STORE,
    ) -> None:
        async def work(desk: Desk) -> None:
            strategy = await operations.find_strategy(desk, key, domain=domain)
            body = operations.StateBody.model_construct(state=state, reason=reason)
            await operations.change_strategy(desk, strategy.domain, key, body)

        at_desk(store, work, by=by)
        screen.say(f"{key} is {state}")

    change.__doc__ = text
    playbook.command(verb)(change)


_state_command("activate", "active", "Offer a strategy to runs, on your word.")
_state_command("quarantine", "quarantined", "Offer a strategy to no run until somebody activates it.")
_state_command("retire", "retired", "Give a strategy up for good.")
