"""Refused arguments: what a run that came to nothing teaches the next one."""

import json
from typing import Any

import pytest

from journeyman import Agent, RiskLevel, ToolError, ToolLibrary, run, tool
from journeyman.core.playbook import NEXT_STEP, Lookup
from journeyman.learning import Playbook
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.learning.forms import LearningSettings
from journeyman.learning.reflector import lookups_of
from journeyman.testing import ScriptedModel, call, say

PARCELS = {"p-77": "Ada Byron"}


@tool(read_only=True)
async def search_parcels(addressee: str) -> list[dict[str, str]]:
    """Find parcels by their addressee."""
    return [{"parcel_id": key, "addressee": name} for key, name in PARCELS.items() if addressee in name]


@tool(read_only=True)
async def parcel_weight(parcel_id: str) -> str:
    """How heavy a parcel is."""
    return "2 kg"


@tool(risk=RiskLevel.REVERSIBLE)
async def return_parcel(parcel_id: str, reason: str) -> str:
    """Send a parcel back."""
    if parcel_id not in PARCELS:
        raise ToolError("PARCEL_NOT_FOUND", f"there is no parcel {parcel_id!r}")
    return "returned"


TOOLS: list[Any] = [search_parcels, parcel_weight, return_parcel]


def agent() -> Agent:
    return Agent(name="post", instruction="Handle parcels.", tools=TOOLS)


def playbook(**settings: Any) -> Playbook:
    return Playbook("post", settings=LearningSettings(holdout=0.0, **settings), embedder=None)


def hints(model: ScriptedModel) -> list[str | None]:
    """What the model was told last at each step."""
    said = [request.messages[-1] for request in model.requests]
    return [message.content if message.name == NEXT_STEP else None for message in said]


async def asked(book: Playbook, request: str, *steps: Any) -> list[str | None]:
    model = ScriptedModel(list(steps))
    await run(agent(), request, library=ToolLibrary(TOOLS), model=model, playbook=book)
    return hints(model)


async def test_a_refused_value_is_looked_up_the_next_time() -> None:
    book = playbook()
    told = await asked(
        book,
        "Send Ada Byron's parcel back, it is broken",
        call("return_parcel", parcel_id="12345", reason="broken"),
        say("There is no such parcel."),
    )
    assert told == [None, None]  # nothing was known
    [bullet] = [item for item in await book.bullets() if item.section == "Pitfalls"]
    assert bullet.lookup == Lookup(tool_name="return_parcel", parameter="parcel_id")

    told = await asked(
        book,
        "Ada Byron wants a refund, return the parcel",
        call("return_parcel", parcel_id="Ada Byron", reason="refund"),
        call("search_parcels", addressee="Ada Byron"),
        call("return_parcel", parcel_id="p-77", reason="refund"),
        say("Returned."),
    )
    assert told[0] is None
    assert told[1] == "Look parcel_id up, do not guess it: call search_parcels now."
    assert told[2] == 'Call return_parcel now with parcel_id: "p-77".'
    assert told[3] == "If nothing is left to do, tell the user what was done."
    [bullet] = [item for item in await book.bullets() if item.section == "Pitfalls"]
    assert bullet.lookup is not None
    assert bullet.lookup.found_by == "search_parcels"
    assert bullet.content == "return_parcel: look parcel_id up with search_parcels first; do not guess it."
    kept = json.dumps([item.model_dump(mode="json") for item in await book.bullets()])
    assert "12345" not in kept
    assert "Byron" not in kept
    assert "p-77" not in kept


async def test_nothing_is_told_where_that_is_not_wanted_or_nothing_was_refused() -> None:
    refused = (call("return_parcel", parcel_id="12345", reason="x"), say("No."))
    for book in (playbook(lookups=False), playbook()):
        await asked(book, "Return my parcel", *refused)
        again = await asked(book, "Return my parcel", *refused)
        assert (again[1] is None) is not book.settings.lookups
    fine = await asked(book, "How heavy is p-77?", call("parcel_weight", parcel_id="p-77"), say("2 kg"))
    assert fine == [None, None]


async def test_what_finds_nothing_is_not_built_upon() -> None:
    book = playbook()
    await asked(book, "Return it", call("return_parcel", parcel_id="1", reason="x"), say("No."))
    told = await asked(
        book,
        "Return Bob's parcel",
        call("return_parcel", parcel_id="Bob", reason="x"),
        call("search_parcels", addressee="Bob"),
        say("Nothing found."),
    )
    assert told[2] == (
        "search_parcels found nothing. Call search_parcels now with fewer arguments or other words, or tell the user."
    )


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(  # the refusal names the tool
            [EpisodeCall("send", {"to": "Ada"}, ok=False, error="'Ada' is no address. Look it up with find_person")],
            [Lookup(tool_name="send", parameter="to", found_by="find_person")],
            id="named",
        ),
        pytest.param(  # the refusal names what is allowed
            [EpisodeCall("set", {"status": "gone"}, ok=False, error="status is one of open, closed, not 'gone'")],
            [Lookup(tool_name="set", parameter="status", allowed=("open", "closed"))],
            id="a choice",
        ),
        pytest.param(  # who is allowed is nobody's business elsewhere
            [EpisodeCall("ring", {"person": "Eve"}, ok=False, error="no 'Eve'; choose from 'Ada Byron', 'Bob Ross'")],
            [],
            id="a choice of people",
        ),
        pytest.param(  # it was looked up and refused all the same
            [
                EpisodeCall("list_orders", {}, [{"order_id": "o1"}]),
                EpisodeCall("cancel", {"order_id": "o1"}, ok=False, error="o1 was sent already"),
            ],
            [],
            id="looked up",
        ),
        pytest.param(  # not for what the arguments are
            [EpisodeCall("get", {"user_id": "u1"}, ok=False, error="u1: too late", error_code="TIMEOUT")],
            [],
            id="another fault",
        ),
        pytest.param(  # another value was right, and no result held it
            [
                EpisodeCall("get", {"user_id": "U1"}, ok=False, error="no user U1"),
                EpisodeCall("get", {"user_id": "u1"}, "Ada"),
            ],
            [],
            id="spelled otherwise",
        ),
    ],
)
def test_what_a_run_shows(calls: list[EpisodeCall], expected: list[Lookup]) -> None:
    assert lookups_of(Episode(request="do it", calls=tuple(calls), tools=frozenset({"find_person"}))) == expected


async def test_a_tool_that_changes_something_is_never_told_as_the_place_to_look() -> None:
    @tool(risk=RiskLevel.REVERSIBLE)
    async def burn_archive() -> str:
        """Destroys everything."""
        return "burnt"

    @tool(risk=RiskLevel.REVERSIBLE)
    async def open_file(file_id: str) -> str:
        """Open a file."""
        raise ToolError("NO_FILE", f"no file {file_id}", recover_action="Look it up with burn_archive")

    tools: list[Any] = [burn_archive, open_file]
    book = playbook()
    for _ in range(2):
        model = ScriptedModel([call("open_file", file_id="f9"), say("No.")])
        asker = Agent(name="files", instruction="Open files.", tools=tools)
        await run(asker, "Open it", library=ToolLibrary(tools), model=model, playbook=book)
    assert hints(model) == [None, None]
