"""The time machine: recorded runs replayed, forked and compared. A replay has no effect."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from journeyman.app.desk import Desk, NotFoundError
from journeyman.app.operations.runs import RunView, view_of
from journeyman.app.operations.table import Body, Id, Object, Storable, Worded, operation, refused
from journeyman.app.replays import ForkOptions, ReplayOptions, recording_of, replay, today
from journeyman.core.data import Entity
from journeyman.core.errors import ConfigurationError, InvalidDataError
from journeyman.core.policy import WRITE_ALL, Policy
from journeyman.core.runs import Message
from journeyman.replay.gate import judge
from journeyman.replay.models import seen
from journeyman.replay.playing import RunDiff, diff, play
from journeyman.replay.recording import Recording
from journeyman.replay.report import ReplayReport
from journeyman.replay.written import Redaction, written_test

MOST_RUNS = 1_000
"""That can be named at once."""


class ReplayBody(Body):
    """Which runs, and under which rules."""

    runs: list[Id] = Field(default_factory=list, max_length=MOST_RUNS, description="Only these; without any, all.")
    since: Annotated[float, Field(ge=0)] | None = Field(
        default=None, description="Where none are named: only those that began in the last so many seconds."
    )
    policy: Object | None = Field(
        default=None, description="Fields of a policy in the place of today's.", examples=[{"grounding": "ask"}]
    )


@operation("runs.replay", "What today's rules, or others, would decide of recorded calls")
async def replay_runs(desk: Desk, body: ReplayBody) -> ReplayReport:
    """Nothing is run and nobody is asked: every recorded call passes the gate, and what it says is compared."""
    options: ReplayOptions = {"since": body.since, "principal_id": desk.visible()}
    if body.policy is not None:
        try:
            options["policy"] = Policy(**{**dict(desk.app.policy), **body.policy})
        except InvalidDataError as error:
            raise refused("policy", str(error)) from None
    return await replay(desk.app, [(await desk.run(run_id)).id for run_id in body.runs], **options)


class ForkBody(Body):
    """From which step on a run goes otherwise, and how."""

    at: int = Field(ge=1, description="The step, from 1.", examples=[2])
    say: Worded | None = Field(default=None, description="Said to the model before it goes on.")
    arguments: Object | None = Field(default=None, description="Other arguments for the step's call.")
    result: Storable = Field(default=None, description="Another result of the step's call, which is not made.")
    call_id: Id | None = Field(default=None, description="Which call, where the step has several.")
    model: Worded | None = Field(default=None, max_length=300, description="Goes on in the place of the run's own.")


@operation("runs.fork", "Begin a run that shares the past of another one and goes on otherwise")
async def fork_run(desk: Desk, run_id: Id, body: ForkBody) -> RunView:
    """Nothing of the past is done again; what follows is governed afresh, and what was allowed is not inherited. For
    whoever the run is, or with the permission 'runs:write'; another model needs that permission."""
    row = await desk.own(run_id)
    if body.model is not None:
        desk.must_hold(WRITE_ALL)
    options: ForkOptions = {"say": body.say, "arguments": body.arguments, "call_id": body.call_id, "model": body.model}
    if "result" in body.model_fields_set:
        options["result"] = body.result
    try:
        handle = await desk.app.fork(row.id, at=body.at, **options)
    except ConfigurationError as error:
        raise refused("at", str(error)) from None
    return await view_of(await desk.run(handle.run_id), desk)


class CallView(Entity):
    """One call of a step, and what was decided of it."""

    call_id: str
    tool_name: str
    then: str
    """free, asked or denied."""
    today: str | None
    """The same by today's rules; None where nothing says what the tool is."""
    rule: str
    """What decides it today."""


class StepView(Entity):
    """One step of a run: what the model saw before it, what it said, and what the gate decided."""

    iteration: int
    steps: int
    """How many the run has."""
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    """That were offered."""
    text: str
    calls: tuple[CallView, ...]


@operation("runs.step", "What the model saw before a step, what it said, and why the gate decided as it did")
async def show_step(
    desk: Desk, run_id: Id, step: Annotated[int, Field(ge=1, description="The step, from 1.", examples=[1])]
) -> StepView:
    recording = Recording((await desk.run(run_id)).id, await desk.facts(run_id))
    held = today(desk.app)
    try:
        shown, request = seen(recording, held, step)
    except ConfigurationError:
        raise NotFoundError("step", str(step)) from None
    judged = {item.call_id: item async for item in judge(recording, held)}
    calls = [(item, judged[call_id]) for call_id, item in shown.calls.items()]
    return StepView(
        iteration=step,
        steps=len(recording.steps),
        messages=tuple(request.messages),
        tools=tuple(item.name for item in request.tools),
        text=shown.message.text,
        calls=tuple(
            CallView(call_id=it.call.id, tool_name=it.call.tool_name, then=it.gate, today=now.now, rule=now.rule)
            for it, now in calls
        ),
    )


class TestView(Entity):
    """A run as a test of pytest, and the recording that it plays."""

    test: str
    recording: str
    replaced: int
    """How many secrets were replaced in it."""


@operation("runs.test", "Turn a run into a test of pytest, with a recording that holds no secret")
async def make_test(desk: Desk, run_id: Id) -> TestView:
    row, redaction = await desk.run(run_id), Redaction()
    recording = redaction.recording(await recording_of(desk.app, row.id))
    try:
        test = written_test(await play(recording, today(desk.app)), f"recordings/{row.id}.json")
    except ConfigurationError:  # it has not begun
        raise NotFoundError("recording of run", run_id) from None
    return TestView(test=test, recording=recording.to_json(), replaced=len(redaction.replaced))


@operation("runs.diff", "Where two runs part, and what each did, answered and cost")
async def compare_runs(desk: Desk, run_id: Id, other: Annotated[Id, Field(description="The other run.")]) -> RunDiff:
    return diff(*[Recording(run_id, await desk.facts(run_id)) for run_id in (run_id, other)])
