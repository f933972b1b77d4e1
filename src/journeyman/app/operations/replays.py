"""The time machine: recorded runs replayed, forked and compared. A replay has no effect."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from journeyman.app.desk import Desk
from journeyman.app.operations.table import Body, Id, Object, operation, refused
from journeyman.app.replays import ReplayOptions, replay
from journeyman.core.errors import InvalidDataError
from journeyman.core.policy import Policy
from journeyman.replay.report import ReplayReport

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
