"""Requests that are sent again: the run of the first one answers, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Header

from journeyman.app.service import Service
from journeyman.core.data import digest
from journeyman.core.principals import Principal
from journeyman.core.storing import RunOrder
from journeyman.doors.http.auth import CHANGE_ALL
from journeyman.doors.http.errors import Problem

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Of two requests of yours with the same key the second starts nothing: the first one's run "
        "answers both.",
    ),
]


def keyed(door: str, principal: Principal, key: str | None) -> str | None:
    """The id of the run that a key stands for. Nobody can guess or take the run of somebody else's key."""
    return None if key is None else f"run_{digest('idempotency', door, principal.id, key)}"


async def begun_before(
    service: Service, run_id: str, principal: Principal, *, same: Callable[[RunOrder], bool]
) -> RunOrder | None:
    """What an earlier request with the same name asked for; refused where that was something else."""
    order = await service.store.runs.order(run_id)
    if order is None:
        return None
    owner = None if order.principal is None else order.principal.id
    if not same(order) or not (owner == principal.id or principal.may(CHANGE_ALL)):
        raise Problem(
            409,
            "RUN_EXISTS",
            f"a run named {run_id!r} exists and is another one",
            recover_action="Use a new name, or a new Idempotency-Key",
            headers={"X-Should-Retry": "false"},
        )
    return order
