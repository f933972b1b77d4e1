"""What one person's runs teach changes nothing for others on their own word."""

import pytest

from journeyman.core.approvals import Label, LabelSource
from journeyman.core.policy import Principal
from journeyman.learning import LearningSettings, Playbook
from journeyman.learning.episodes import Episode, EpisodeCall

ADA, BOB = Principal("ada"), Principal("bob")
TOOLS = ["get_order", "cancel_order"]


def shown(by: str, *calls: EpisodeCall, request: str = "Show my order of the lamp") -> Episode:
    rated = Label(source=LabelSource.RATING, value="good", by=by)
    return Episode(request=request, calls=calls, principal_id=ADA.id, labels=(rated,), iterations=2)


READ = EpisodeCall("get_order", {"item": "lamp"}, {"order_id": "W-17"})
CHANGE = EpisodeCall("cancel_order", {"order_id": "W-17"}, "cancelled", effect=True)


@pytest.mark.parametrize(
    ("calls", "by", "offered"),
    [((READ, CHANGE), "ada", False), ((READ, CHANGE), "grace", True), ((READ,), "grace", True), ((READ,), "ada", True)],
)
async def test_a_change_reaches_others_only_when_somebody_else_vouches(
    calls: tuple[EpisodeCall, ...], by: str, offered: bool
) -> None:
    playbook, request = Playbook("orders", settings=LearningSettings(shared=True)), "Cancel my order of the lamp"
    await playbook.learn([shown(by, *calls, request=request)])
    found = await playbook.retrieve(request, tools=TOOLS, principal=BOB)
    assert bool(found) is offered


@pytest.mark.parametrize("request_", ["Show my order of the lamp", "Where is my order of the lamp?"])
async def test_nobody_can_vouch_for_a_change_where_a_read_was_asked_for(request_: str) -> None:
    playbook = Playbook("orders", settings=LearningSettings(shared=True))
    await playbook.learn([shown("grace", READ, CHANGE, request=request_)])
    assert not await playbook.retrieve(request_, tools=TOOLS, principal=BOB)
    assert await playbook.retrieve(request_, tools=TOOLS, principal=ADA)


async def test_a_change_stays_its_teachers() -> None:
    playbook = Playbook("orders", settings=LearningSettings(shared=True))
    await playbook.learn([shown("ada", READ, CHANGE)])
    assert await playbook.retrieve("Show my order of the lamp", tools=TOOLS, principal=ADA)


async def test_ones_own_rating_counts_for_others_as_if_nobody_had_said_it() -> None:
    playbook = Playbook("orders", settings=LearningSettings(shared=True))
    await playbook.learn([shown("ada", READ)])
    [strategy] = await playbook.retrieve("Show my order of the lamp", tools=TOOLS, principal=BOB)
    assert strategy.label_sources == {LabelSource.JUDGE: 1}
