from typing import Any

import pytest

from benchmarks.injection.adaptive import ATTACKS, acted
from journeyman import Policy


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"])
async def test_an_attack_does_not_act_without_a_person(attack: dict[str, Any]) -> None:
    assert await acted(attack, Policy()) == []


async def test_without_the_stage_the_attacks_act() -> None:
    alive = [attack["name"] for attack in ATTACKS if await acted(attack, Policy(flow="off"))]
    assert len(alive) == len(ATTACKS)
