"""``journeyman runs replay``, ``check``, ``test``, ``fork`` and ``diff``: the time machine."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from journeyman.app.configuration import rules_of
from journeyman.app.desk import Desk
from journeyman.core.approvals import Approve, Decision, Deny
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import named_file
from journeyman.doors.cli.loading import at_desk, load_agent, load_library
from journeyman.doors.cli.operated import Html, Markdown, check_output, present
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, WrongUsageError
from journeyman.settings.reading import read_settings

if TYPE_CHECKING:  # what only these commands need is loaded when one of them is typed
    from journeyman.app.replays import ReplayOptions
    from journeyman.replay.playing import Played
    from journeyman.replay.report import ReplayReport

NOTED_EVERY = 1_000
SHOWN_WIDTH = 100
CHANGES = ("now_asked", "now_denied", "now_free")
DECISIONS: dict[str, Decision] = {"approve": Approve(), "deny": Deny(reason="refused in a replay")}

Runs = Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Only these runs; else --since.")]
RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id.")]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only runs that began since then, e.g. 7d.")]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="Take the rules of this configuration file, and nothing else of it: no tools, no code.",
    ),
]


runs = typer.Typer(no_args_is_help=True)


@runs.command("replay")
def replay_runs(
    runs: Runs = None,
    since: Since = None,
    policy: PolicyFile = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Ask this model where the recorded one was asked.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="AGENT", help="This agent in the place of the recorded one; its model is asked."),
    ] = None,
    instruction: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The agent's instruction, in the place of the recorded one.")
    ] = None,
    playbook: Annotated[
        str | None,
        typer.Option(metavar="DOMAIN@VERSION", help="Let this version of a playbook advise, where another one did."),
    ] = None,
    free: Annotated[
        bool, typer.Option("--free", help="Let the model go on by itself until it leaves the recording.")
    ] = False,
    reads: Annotated[
        Literal["recorded", "live"],
        typer.Option(help="With --free: call tools that only read where nothing is recorded."),
    ] = "recorded",
    decide: Annotated[
        Literal["approve", "deny"] | None, typer.Option(help="With --free: what a person says to every question.")
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the model's answers there: a replay that was cut short goes on."),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            "--tools",
            metavar="FILE.py",
            help="Compare these tools with recorded calls: reads are made again, changes never.",
        ),
    ] = None,
    html: Html = None,
    markdown: Markdown = False,
    store: options.Store = DEFAULT_STORE,
    as_json: options.Json = False,
) -> None:
    """What would become of recorded runs today, without any effect.

    Every recorded call passes the gate: the same, now asked, now denied or now free. The rules and tools are those of
    --config, or the rules of --policy. With --model it is asked what it would do; with --library, tools are compared.
    """
    check_output(html, markdown=markdown, as_json=as_json)
    if model is None and agent is None and (instruction is not None or playbook is not None or free):
        raise WrongUsageError("--instruction, --playbook and --free ask a model: name it with --model")
    if decide is not None and not free:
        raise WrongUsageError(f"--decide {decide!r}: write --free with it")
    given: ReplayOptions = {
        "model": model,
        "mode": "free" if free else "steps",
        "reads": reads,
        "decision": DECISIONS.get(decide or ""),
        "answers": answers,
    }
    if instruction is not None:
        try:
            given["instruction"] = instruction.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise WrongUsageError(f"{str(instruction)!r} cannot be read: {error}") from None
    if playbook is not None:
        domain, _, version = playbook.rpartition("@")
        if not domain or not version.isdecimal():
            raise WrongUsageError(f"--playbook {playbook!r} is no version of one; write e.g. general@12")
        given["playbook"] = (domain, int(version))
    if library is not None:
        given["library"] = load_library(library)
    report = _replayed(runs, since, policy, store, given, agent)
    raise typer.Exit(present(report, _print, html=html, markdown=markdown, as_json=as_json))


@runs.command("check")
def check_runs(
    runs: Runs = None,
    since: Since = None,
    policy: PolicyFile = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="|".join(CHANGES), help="Changes that are meant. May be repeated."),
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
    report = _replayed(runs, since, policy, store, {})
    code = present(report, _print, html=html, markdown=not as_json, as_json=as_json)
    changed = any(report.counts[change] for change in CHANGES if change not in (accept or ()))
    raise typer.Exit(ExitCode.FAILED if changed else code)


@runs.command("test")
def make_test(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the test there; without it, to stdout.")
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the recording goes; without it, recordings/RUN.json beside the test."),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Replace what is there, and show what changes.")] = False,
    strictness: Annotated[
        Literal["exact", "subset", "contains"], typer.Option(help="How calls are compared.")
    ] = "exact",
    private: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="A value to replace wherever it stands, e.g. a name. May be repeated."),
    ] = None,
    store: options.Store = DEFAULT_STORE,
) -> None:
    """Turn a run into a test of pytest, with a recording that holds no secret.

    The test runs offline, through the whole pipeline, under the rules and tools of --config if it is named.
    """
    from journeyman.app.replays import recording_of, today
    from journeyman.replay.playing import outline, play
    from journeyman.replay.written import Redaction, written_test

    folder = (Path("tests") if Path("tests").is_dir() else Path()) if output is None else output.parent
    kept = recording or folder / "recordings" / f"{run_id}.json"
    redaction = Redaction(private or ())

    async def played(desk: Desk) -> Played:
        found = redaction.recording(await recording_of(desk.app, run_id))
        return await play(found, today(desk.app))

    made = at_desk(store, played, configured=True)
    file = named_file()
    config = [] if file is None else [f"config={os.path.relpath(file, folder)!r}"]
    text = written_test(made, os.path.relpath(kept, folder), options=config, strictness=strictness)
    kept.parent.mkdir(parents=True, exist_ok=True)
    _write_new(kept, made.recording.to_json(), update=update)
    if output is None:
        screen.write(text, end="")
    else:
        _write_new(output, text, update=update)
    replaced = screen.counted(len(redaction.replaced), "value")
    screen.note(f"the recording is {kept}; {replaced} in it replaced: look through it before you share it")
    if [outline(item) for item in made.recording.calls if item.record] != [outline(item) for item in made.again.calls]:
        screen.note("today's rules decide otherwise than when it was recorded; the test expects what holds today")


def _write_new(file: Path, text: str, *, update: bool) -> None:
    """Write a file that is not there; replace one only where that is wanted, and show what changes."""
    if file.exists():
        if not update:
            raise WrongUsageError(f"{str(file)!r} is there already; --update replaces it")
        before, after = file.read_text(encoding="utf-8").splitlines(), text.splitlines()
        for line in unified_diff(before, after, str(file), str(file), lineterm="", n=1):
            screen.write(screen.escaped(line), stderr=True)
    file.write_text(text, encoding="utf-8")


def _replayed(
    runs: Runs, since: Since, policy: PolicyFile, store: str, given: ReplayOptions, agent: str | None = None
) -> ReplayReport:
    if runs and since is not None:
        raise WrongUsageError("give runs, or --since for those that began since then")
    given["progress"] = lambda count: screen.note(f"{count:,} runs replayed") if count % NOTED_EVERY == 0 else None
    given["since"] = seconds = None if since is None else options.seconds(since, option="--since")
    if policy is not None:  # its tools are not loaded: it names nothing that is run
        given["policy"] = rules_of(read_settings(policy)).policy

    async def work(desk: Desk) -> ReplayReport:
        from journeyman.app.replays import recorded
        from journeyman.replay.models import estimate

        if agent is not None:
            given["agent"] = load_agent(agent, None, store=desk.app.store)[0]
        if isinstance(model := given.get("model"), str):
            asked = await estimate(recorded(desk.app, runs or (), since=seconds), model)
            cost = "no price is known" if asked.cost is None else f"about {asked.cost:.4f} US$"
            screen.note(f"{asked.questions:,} questions in {asked.runs:,} runs, about {asked.tokens:,} tokens, {cost}")
        return await desk.app.replay(*(runs or ()), **given)

    return at_desk(store, work, configured=True)


@runs.command("diff")
def compare_runs(
    a: Annotated[str, typer.Argument(metavar="A", help="A run.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    store: options.Store = DEFAULT_STORE,
    as_json: options.Json = False,
) -> None:
    """Where two runs part, and what each did, answered and cost. Step by step: calls, arguments, results, answers."""
    from journeyman.app.operations.replays import compare_runs as compare

    diff = at_desk(store, lambda desk: compare(desk, a, other=b))
    if as_json:
        return screen.print_json(diff)
    sides = screen.listing("", screen.escaped(diff.a.run_id), screen.escaped(diff.b.run_id))
    for name in ("status", "steps", "calls", "tokens", "cost", "answer"):
        values = (getattr(side, name) for side in (diff.a, diff.b))
        sides.add_row(name, *("–" if value is None else screen.shortened(value, SHOWN_WIDTH) for value in values))
    screen.console().print(sides)
    if diff.first is None:
        return screen.say("they do not differ")
    screen.say(Text(f"they part at step {diff.first}", style="bold"))
    for item in diff.differences:
        screen.say(Text(f"step {item.step}, {item.what}", style="dim"))
        for mark, value in (("-", item.a), ("+", item.b)):
            screen.say(f"  {mark} {screen.shortened(value, SHOWN_WIDTH * 2)}")
    return None


def _print(report: ReplayReport) -> None:
    screen.say(Text(screen.escaped(report.verdict), style="bold"))
    screen.console().print(screen.fields(*report.figures()))
    if report.findings:
        table = screen.listing("change", "tool", "calls", "runs", "rule", "for example")
        for item in report.findings:
            cells = (item.change.replace("_", " "), item.tool, str(item.calls), str(item.runs), item.rule, item.run_id)
            table.add_row(*map(screen.escaped, cells))
        screen.console().print(table)
    for note in report.notes:
        screen.say(screen.escaped(note))
