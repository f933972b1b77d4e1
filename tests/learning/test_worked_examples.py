"""What a run is shown of others: calls with values that nobody owns, and what a request says in their place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journeyman import Agent, RiskLevel, ToolError, run, tool
from journeyman.core.playbook import Advice, Demonstration
from journeyman.learning import LearningSettings, Playbook
from journeyman.learning.abstraction import abstract
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.learning.examples import is_choice, nearest
from journeyman.testing import ScriptedModel, call, say

LEVELS = ("Standard", "Silver", "Gold", "Platinum")
GUESTS = {"Boris Keller": "G-4821", "Greta Maier": "G-1970", "Nils Orsini": "G-6035", "Chloe Duarte": "G-7702"}


def stay(name: str, month: str, day: str, number: str, reason: str, because: str) -> Episode:
    """Somebody's stay, cancelled."""
    guest = GUESTS[name]
    days = {"date_from": f"2026-{month}-01", "date_to": f"2026-{month}-31"}
    spoken = {"07": "July", "08": "August"}[month]
    return Episode(
        request=f"Cancel the stay of {name} in {spoken} (arrival {day} {spoken}), {because}.",
        calls=(
            EpisodeCall("find_guest", {"name": name}, [{"guest_id": guest, "email": "boris@post.example"}]),
            EpisodeCall("search_stays", {"guest_id": guest, "room": None, **days}, [{"stay_id": number}]),
            EpisodeCall("cancel_stay", {"stay_id": number, "reason": reason}, "ok", effect=True),
        ),
    )


def demonstration(episode: Episode, **options: Any) -> Demonstration:
    made = abstract(episode, **options)
    assert made is not None
    return made.demonstration


def test_an_example_has_values_of_the_same_form_that_are_nobodys() -> None:
    [example] = demonstration(stay("Boris Keller", "07", "14", "R-3310", "Illness", "Boris fell ill")).examples
    kept = example.model_dump_json()
    assert not any(value in kept for value in ("Boris", "Keller", "G-4821", "R-3310"))
    found, searched, cancelled = example.calls
    assert found["name"] in example.request  # the same value wherever it stands
    assert found["name"].istitle()
    assert len(found["name"].split()) == 2
    assert searched["guest_id"].startswith("G-")
    assert len(searched["guest_id"]) == len("G-4821")
    assert "room" not in searched
    # A month is nobody's, and what was reckoned from it stays right; a choice stays as it is written.
    assert "in July" in example.request
    assert (searched["date_from"], searched["date_to"]) == ("2026-07-01", "2026-07-31")
    assert cancelled["reason"] == "Illness"
    assert {found["name"], searched["guest_id"], cancelled["stay_id"]} <= set(example.values)
    assert "Illness" not in example.values


def test_a_day_of_the_request_is_another_one_in_both_places() -> None:
    calls = (EpisodeCall("add_shift", {"date": "2026-07-14", "slot": "Night"}, "ok", effect=True),)
    [example] = demonstration(Episode(request="Add a night shift on 14 July.", calls=calls)).examples
    day = int(example.calls[0]["date"][-2:])
    assert day != 14
    assert f"on {day} July" in example.request
    assert example.calls[0]["slot"] == "Night"
    assert "night shift" in example.request


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("anna.berg@firm.example", False),
        ("Anna Berg", False),
        ("W-177", False),
        ("0049 171 2345678", False),
        ("the diagnosis is a secret of hers", False),
        ("high", True),
    ],
)
def test_what_was_taken_from_a_request_or_a_result_is_not_shown(value: str, kept: bool) -> None:
    said = Episode(request=f"Note {value} now", calls=(EpisodeCall("note", {"level": value}, "ok", effect=True),))
    found = (
        EpisodeCall("look", {}, [{"thing": value}]),
        EpisodeCall("note", {"thing_id": value}, "ok", effect=True),
    )
    assert (value in demonstration(said).model_dump_json()) is kept
    assert value not in json.dumps([dict(item) for item in demonstration(Episode("Do it", found)).examples[0].calls])


def test_values_are_the_teachers_own_where_they_say_so_but_for_secrets() -> None:
    episode = stay("Boris Keller", "07", "14", "R-3310", "Illness", "the key is AKIAIOSFODNN7EXAMPLE")
    [example] = demonstration(episode, own=True).examples
    assert example.request.startswith("Cancel the stay of Boris Keller in July (arrival 14 July)")
    assert example.calls[2] == {"stay_id": "R-3310", "reason": "Illness"}
    assert set(example.values) == {"Boris Keller", "G-4821", "R-3310"}
    assert "IOSFODNN7" not in example.model_dump_json()


def test_the_nearest_example_shares_most_words() -> None:
    one = demonstration(stay("Boris Keller", "07", "14", "R-3310", "Illness", "they fell ill")).examples[0]
    two = demonstration(stay("Greta Maier", "08", "3", "R-2210", "Overbooking", "we are overbooked")).examples[0]
    assert nearest((one, two), "They are ill, please cancel what they have in July") is one
    assert nearest((one, two), "The house is overbooked") is two
    assert nearest((), "anything") is None


def test_a_choice_is_no_free_text_and_nobody() -> None:
    assert is_choice("status", "Out of service")
    assert is_choice("priority", "high")
    assert not any(
        is_choice(name, text)
        for name, text in (
            ("name", "Anna"),
            ("query", "Budget"),
            ("guest_id", "anna"),
            ("status", "Anna Berg"),
            ("a", "a1"),
        )
    )


@tool(read_only=True)
async def find_guest(name: str) -> list[dict[str, str]]:
    """Find a guest by name."""
    return [{"guest_id": number, "name": who} for who, number in GUESTS.items() if name in who]


@tool(risk=RiskLevel.REVERSIBLE)
async def set_guest_level(guest_id: str, level: str) -> str:
    """Set a guest's level."""
    if level not in LEVELS:
        raise ToolError("NOT_ALLOWED", f"level {level!r} is not allowed; choose from {', '.join(map(repr, LEVELS))}")
    return "set"


TOOLS: list[Any] = [find_guest, set_guest_level]


def book() -> Playbook:
    return Playbook("inn", settings=LearningSettings(holdout=0.0, needed=1), embedder=None)


async def taught(**options: Any) -> Playbook:
    playbook, episodes = book(), []
    for name, level, text in (
        ("Boris Keller", "Gold", "Make {} a gold guest."),
        ("Greta Maier", "Platinum", "Set {}'s level to platinum."),
    ):
        made = (
            EpisodeCall("find_guest", {"name": name}, [{"guest_id": GUESTS[name]}]),
            EpisodeCall("set_guest_level", {"guest_id": GUESTS[name], "level": level}, "set", effect=True),
        )
        episodes.append(Episode(request=text.format(name), calls=made))
    await playbook.learn(episodes, **options)
    return playbook


async def asked(playbook: Playbook, request: str, *turns: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(list(turns))
    agent = Agent(name="inn", instruction="Look after guests.", tools=TOOLS)
    return await run(agent, request, model=model, playbook=playbook), model


async def advised(playbook: Playbook, request: str) -> Advice | None:
    given = await playbook.advise(request, tools=["find_guest", "set_guest_level", "show_guest", "delete_guest"])
    return next((item for item in given if item.steps), None)


async def test_a_copied_value_of_an_example_is_refused_with_the_cure() -> None:
    playbook = await taught()
    advice = await advised(playbook, "Make Nils Orsini a gold guest.")
    assert advice is not None
    copied, taken = advice.steps[0].example["name"], advice.steps[1].example["guest_id"]
    response, model = await asked(
        playbook,
        "Make Nils Orsini a gold guest.",
        call("find_guest", name=copied),
        call("find_guest", name="Nils Orsini"),
        call("set_guest_level", guest_id=taken, level="Gold"),
        call("set_guest_level", guest_id="G-6035", level="Gold"),
        say("Done."),
    )
    first, found, second, made = response.tool_calls
    assert [item.error and item.error.code for item in (first, second)] == ["UNGROUNDED_ARGUMENT"] * 2
    assert first.error.recover_action.startswith("Take it from this request, or look it up first")
    assert "find_guest" in second.error.recover_action
    assert found.success
    assert made.success  # "Gold" stands in the example too: a choice is nobody's
    shown = model.requests[0].messages[-1].content
    assert json.dumps({"name": "find_guest", "arguments": {"name": copied}}) in shown
    assert "Boris" not in "".join(message.content for request in model.requests for message in request.messages)


async def test_a_value_that_an_example_shares_with_the_request_is_no_copy() -> None:
    playbook = await taught(own_values=True)
    response, _ = await asked(
        playbook, "Make Boris Keller a gold guest.", call("find_guest", name="Boris Keller"), say("Found.")
    )
    assert response.tool_calls[0].success
    assert "G-4821" in json.dumps([item.model_dump(mode="json") for item in await playbook.bullets()])


async def test_what_a_tool_allows_is_learned_from_its_refusal_and_a_near_miss_answered_before_the_call() -> None:
    playbook = book()
    await asked(
        playbook,
        "Make Chloe Duarte something",
        call("find_guest", name="Chloe Duarte"),
        call("set_guest_level", guest_id="G-7702", level="Diamond"),
        say("It is not allowed."),
    )
    [lookup] = [item.lookup for item in await playbook.bullets() if item.lookup is not None]
    assert (lookup.parameter, lookup.allowed) == ("level", LEVELS)
    response, model = await asked(
        playbook,
        "Nils Orsini is silver now",
        call("find_guest", name="Nils Orsini"),
        call("set_guest_level", guest_id="G-6035", level="silver"),
        call("set_guest_level", guest_id="G-6035", level="Silver"),
        say("Done."),
    )
    _, refused, made = response.tool_calls
    assert refused.error.code == "NOT_ALLOWED_VALUE"
    assert refused.error.recover_action == "Call it again with level: 'Silver'"
    assert model.requests[2].messages[-1].content.endswith('guest_id: "G-6035"; level: "Silver".')
    assert model.requests[2].suggested is not None
    assert model.requests[2].suggested.arguments == {"guest_id": "G-6035", "level": "Silver"}
    assert made.success


@pytest.mark.parametrize(
    ("request_", "given"),
    [
        ("Make Nils Orsini a platinum guest.", [{"name": "Nils Orsini"}, {"level": "Platinum"}]),
        (
            "Would you set the level of guest Nils Orsini? It is platinum.",
            [{"name": "Nils Orsini"}, {"level": "Platinum"}],
        ),
        ("The guest Nils Orsini gets the level gold", [{"name": "Nils Orsini"}, {"level": "Gold"}]),
    ],
)
async def test_in_other_words_the_call_is_suggested_where_all_values_are_said(request_: str, given: Any) -> None:
    advice = await advised(await taught(), request_)
    assert advice is not None
    assert advice.alike
    assert [step.given for step in advice.steps] == given


@pytest.mark.parametrize(
    "request_",
    [
        "Show the level of guest Nils Orsini, is it gold",
        "Is the level of the guest Nils Orsini gold?",
        "Do not set the level of guest Nils Orsini to gold",
        "Set the level of guest Nils Orsini to gold if he pays",
        "Set the level of all guests but Nils Orsini to gold",
        "Restore the gold level of guest Nils Orsini",
        "Keep the gold level of guest Nils Orsini",
        "Delete the gold level of guest Nils Orsini",
        "What is the level of guest Nils Orsini? gold or platinum",
        "Set the level of guest Nils Orsini to gold or platinum",
        "Set the level of the guests Nils Orsini and Chloe Duarte to gold",
        "Tell guest Nils Orsini about the gold level",
        "The guest Nils Orsini asks whether the level is gold",
        "Set the level of guest Nils Orsini",
        "Revoke the gold level of guest Nils Orsini",
        "Guest Nils Orsini complained about the gold level",
        "The guest Nils Orsini was gold",
    ],
)
async def test_a_change_that_is_not_asked_for_is_never_suggested(request_: str) -> None:
    advice = await advised(await taught(), request_)
    assert advice is None or not advice.alike


async def test_days_are_reckoned_as_the_examples_reckoned_them() -> None:
    playbook = book()
    await playbook.learn(
        [
            stay("Boris Keller", "07", "14", "R-3310", "Illness", "they fell ill"),
            stay("Greta Maier", "08", "3", "R-2210", "Overbooking", "we are overbooked"),
        ]
    )
    tools = ["find_guest", "search_stays", "cancel_stay"]
    request = "Cancel the stay of Nils Orsini in June (arrival 9 June), they fell ill."
    [advice] = [item for item in await playbook.advise(request, tools=tools) if item.steps]
    assert advice.steps[1].given == {"date_from": "2026-06-01", "date_to": "2026-06-30"}
    assert advice.steps[2].given == {"reason": "Illness"}


async def test_in_other_words_a_strategy_is_found_by_the_forms_of_the_values_too() -> None:
    playbook = book()
    booked = {"date": "2026-07-03", "time": "19:30", "persons": 4}
    await playbook.learn(
        [
            Episode(
                request="Book a table for 4 for Boris Keller on 2026-07-03 at 19:30.",
                calls=(
                    EpisodeCall("find_guest", {"name": "Boris Keller"}, [{"guest_id": "G-4821"}]),
                    EpisodeCall("book_table", {"guest_id": "G-4821", **booked}, "booked", effect=True),
                ),
            ),
            Episode(
                request="Put the table by the door into room 204.",
                calls=(EpisodeCall("move_table", {"room": "204"}, "moved", effect=True),),
            ),
        ]
    )
    tools = ["find_guest", "book_table", "move_table"]

    async def served(request: str) -> str | None:
        return next((item.tool_sequence[-1] for item in await playbook.retrieve(request, tools=tools)), None)

    assert await served("Dinner: a table shall be booked for Nils Orsini, 2026-08-14, 20:30, for 6") == "book_table"
    assert await served("Which table is the largest one?") is None


def handed_over(client: str, person: str) -> Episode:
    return Episode(
        request=f"Give the client {client} to {person}.",
        calls=(
            EpisodeCall("find_client", {"name": client}, [{"client_id": f"C-{len(client)}1"}]),
            EpisodeCall("find_person", {"name": person}, [{"email": f"{person.split()[0].lower()}@firm.example"}]),
            EpisodeCall(
                "assign_client",
                {"client_id": f"C-{len(client)}1", "to": f"{person.split()[0].lower()}@firm.example"},
                "assigned",
                effect=True,
            ),
        ),
    )


@tool(read_only=True)
async def find_client(name: str) -> list[dict[str, str]]:
    """Find a client by name."""
    return [{"client_id": "C-77"}] if name == "Oak Partners" else []


@tool(read_only=True)
async def find_person(name: str) -> list[dict[str, str]]:
    """Find a person by name."""
    return [{"email": "mona@firm.example"}] if name == "Mona Ivanov" else []


@tool(risk=RiskLevel.REVERSIBLE)
async def assign_client(client_id: str, to: str) -> str:
    """Assign a client to a person's address."""
    return "assigned"


async def test_of_two_names_the_run_is_told_both_and_then_the_one_that_is_left() -> None:
    playbook = book()
    await playbook.learn([handed_over("Birch Group", "Boris Keller"), handed_over("Elm Trading", "Greta Maier")])
    model = ScriptedModel(
        [
            call("find_client", name="Mona Ivanov"),
            call("find_client", name="Oak Partners"),
            call("find_person", name="Mona Ivanov"),
            say("Found."),
            say("Found."),  # and reminded that nothing was changed
        ]
    )
    agent = Agent(name="firm", instruction="Look after clients.", tools=[find_client, find_person, assign_client])
    asked = "Who has the client Oak Partners? Give it to Mona Ivanov from now on."
    await run(agent, asked, model=model, playbook=playbook)
    first, again, person, last, *_ = (request.messages[-1].content for request in model.requests)
    assert first.endswith('call find_client now with name: one of "Oak Partners", "Mona Ivanov".')
    assert again == 'find_client found nothing. Call find_client now with name: "Oak Partners".'
    assert person.endswith('call find_person now with name: "Mona Ivanov".')
    assert last.endswith('call assign_client now with client_id: "C-77"; to: "mona@firm.example".')


async def test_a_list_of_choices_is_told_only_where_each_was_made_more_than_once() -> None:
    playbook = book()
    for name, level in (("Boris Keller", "Gold"), ("Greta Maier", "Platinum"), ("Chloe Duarte", "Gold")):
        made = (EpisodeCall("set_guest_level", {"guest_id": GUESTS[name], "level": level}, "set", effect=True),)
        await playbook.learn([Episode(request=f"Set the level of {GUESTS[name]} to {level}.", calls=made)])
    tools = ["set_guest_level"]

    async def choices() -> tuple[str, ...]:
        [advice] = [item for item in await playbook.advise("Set the level of G-6035.", tools=tools) if item.steps]
        return advice.steps[0].choices["level"]

    assert await choices() == ()
    made = (EpisodeCall("set_guest_level", {"guest_id": "G-6035", "level": "Platinum"}, "set", effect=True),)
    await playbook.learn([Episode(request="Set the level of G-6035 to Platinum.", calls=made)])
    assert set(await choices()) == {"Gold", "Platinum"}


async def cancelled() -> Playbook:
    playbook = book()
    made = []
    for name, number in (("Boris Keller", "T-41"), ("Greta Maier", "T-52")):
        calls = (
            EpisodeCall("find_table", {"name": name}, [{"table_id": number}]),
            EpisodeCall("cancel_table", {"table_id": number}, "cancelled", effect=True),
        )
        made.append(Episode(request=f"Cancel the table of {name}.", calls=calls))
    await playbook.learn(made)
    return playbook


@pytest.mark.parametrize(
    ("request_", "asked_for"),
    [
        ("The table of Nils Orsini: scrap it.", True),
        ("Delete the table that Nils Orsini has.", True),
        ("Book a table for Nils Orsini.", False),
        ("The table of Nils Orsini shall stay.", False),
    ],
)
async def test_another_verb_of_the_same_kind_asks_for_the_change(request_: str, asked_for: bool) -> None:
    playbook = await cancelled()
    given = await playbook.advise(request_, tools=["find_table", "cancel_table", "book_table"])
    assert any(item.alike for item in given) is asked_for


async def test_a_question_before_an_order_and_quoted_words_do_not_keep_a_change_from_being_asked_for() -> None:
    playbook = await taught()
    advice = await advised(playbook, "Is guest Nils Orsini here? The level of the guest shall be gold.")
    assert advice is not None
    assert advice.alike
    for text in ("Is the level of guest Nils Orsini gold? The guest was here.", "Shall guest Nils Orsini get gold?"):
        found = await advised(playbook, text)
        assert found is None or not found.alike
