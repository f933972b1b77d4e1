"""``journeyman runs replay``, ``check``, ``test``, ``fork`` and ``diff``: the time machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.text import Text

from journeyman.app.configuration import rules_of
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import open_at
from journeyman.app.replays import CHANGES, ReplayReport
from journeyman.core.policy import Policy
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import configuration, unusable
from journeyman.doors.cli.experiments import Html, Markdown, check_output, present
from journeyman.doors.cli.loading import must_exist, opened
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, WrongUsageError
from journeyman.settings.problems import SettingsError
from journeyman.settings.reading import read_settings

T = TypeVar("T")
NOTED_EVERY = 1_000

Runs = Annotated[
    list[str] | None, typer.Argument(metavar="[RUN]...", help="Only these runs; else --since.", show_default=False)
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Only runs that began since then, e.g. 7d.", show_default=False)
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="Take the rules of this configuration file, and nothing else of it: no tools, no code.",
        show_default=False,
    ),
]


def add_commands(runs: typer.Typer) -> None:
    """Make the commands those of ``journeyman runs``."""
    runs.command("replay")(replay_runs)
    runs.command("check")(check_runs)


def with_store(url: str, work: Callable[[Journeyman], Awaitable[T]]) -> T:
    """Do something with an app under the configuration file, if there is one, that carries out no runs."""
    must_exist(url)

    async def whole() -> T:
        async with opened(open_at(url)) as store:
            return await work(Journeyman(store=store, configuration=configuration(store)))

    return asyncio.run(whole())


def replay_runs(
    runs: Runs = None,
    since: Since = None,
    policy: PolicyFile = None,
    html: Html = None,
    markdown: Markdown = False,
    store: options.Store = DEFAULT_STORE,
    as_json: options.Json = False,
) -> None:
    """What today's rules would decide of recorded calls: the same, now asked, now denied or now free.

    Nothing is run and nobody is asked. The rules and tools are those of --config, or the rules of --policy.
    """
    check_output(html, markdown=markdown, as_json=as_json)
    report = _replayed(runs, since, policy, store)
    raise typer.Exit(present(report, _print, html=html, markdown=markdown, as_json=as_json))


def check_runs(
    runs: Runs = None,
    since: Since = None,
    policy: PolicyFile = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(CHANGES), help="Changes that are meant. May be repeated.", show_default=False),
    ] = None,
    html: Html = None,
    store: options.Store = DEFAULT_STORE,
    as_json: options.Json = False,
) -> None:
    """Whether the rules and tools of this branch decide recorded calls as before, for CI.

    Exit code 1 where a call would be decided otherwise in a way that is not accepted. The summary is Markdown.
    """
    check_output(html, markdown=False, as_json=as_json)
    if wrong := set(accept or ()) - set(CHANGES):
        raise WrongUsageError(f"--accept {min(wrong)!r} is no change; write one of {', '.join(CHANGES)}")
    report = _replayed(runs, since, policy, store)
    code = present(report, _print, html=html, markdown=not as_json, as_json=as_json)
    changed = any(report.counts[change] for change in CHANGES if change not in (accept or ()))
    raise typer.Exit(ExitCode.FAILED if changed else code)


def _replayed(runs: list[str] | None, since: str | None, policy: Path | None, store: str) -> ReplayReport:
    if runs and since is not None:
        raise WrongUsageError("give runs, or --since for those that began since then")
    seconds = None if since is None else options.seconds(since, option="--since")
    rules = None if policy is None else _policy_of(policy)
    return with_store(
        store, lambda app: app.replay(*(runs or ()), since=seconds, policy=rules, progress=_note_progress)
    )


def _note_progress(count: int) -> None:
    if count % NOTED_EVERY == 0:
        screen.note(f"{count:,} runs replayed")


def _policy_of(file: Path) -> Policy:
    """The rules of a configuration file. Its tools are not loaded: it names nothing that is run."""
    try:
        return rules_of(read_settings(file)).policy
    except SettingsError as error:
        raise unusable(error) from None


def _print(report: ReplayReport) -> None:
    screen.say(Text(screen.escaped(report.verdict), style="bold"))
    figures = screen.fields()
    for name, value in report.figures():
        figures.add_row(name, value)
    screen.console().print(figures)
    if report.findings:
        table = screen.listing("change", "tool", "calls", "runs", "rule", "for example")
        for item in report.findings:
            cells = (item.change.replace("_", " "), item.tool, str(item.calls), str(item.runs), item.rule, item.run_id)
            table.add_row(*map(screen.escaped, cells))
        screen.console().print(table)
    for note in report.notes:
        screen.say(screen.escaped(note))
