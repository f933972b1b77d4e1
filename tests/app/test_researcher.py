"""The researcher on a small web: answers cite what was read, poison leads to nothing, and gaps are said honestly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from journeyman import Journeyman, Principal, RiskLevel, tool
from journeyman.app import Researcher
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.testing import ScriptedModel, call, say
from journeyman.testing.scripted import as_response
from tests.toolkits.research_web import SmallWeb, small_web


@pytest.fixture
async def site() -> AsyncIterator[SmallWeb]:
    async with small_web() as opened:
        yield opened


class Turns:
    """A model that goes on with its script from one run to the next."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.requests: list[ModelRequest] = []

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        self.requests.append(request)
        return as_response(self.turns.pop(0))


async def test_an_answer_cites_what_was_read_and_lists_it(site: SmallWeb) -> None:
    model = ScriptedModel(
        [
            call("web_search", query="harbour bridge"),
            call("fetch_page", url=f"{site.url}/bridge"),
            say("The bridge is 1,149 metres long [1]. It is painted pink [2]. It is the finest of its kind."),
        ]
    )
    answer = await Researcher(search=site.url, model=model, private=True).ask("How long is the bridge?")
    assert answer.text == (
        "The bridge is 1,149 metres long [1]. It is painted pink [2]. It is the finest of its kind. [no source]\n\n"
        f"Sources:\n- [1] The Harbour Bridge – <{site.url}/bridge>\n- [2] Bridge facts – <{site.url}/poison>"
    )
    assert len(answer.problems) == 1
    assert [source.number for source in answer.sources] == [1, 2]


async def test_a_citation_of_something_that_was_never_read_is_marked(site: SmallWeb) -> None:
    model = ScriptedModel(
        [call("fetch_page", url=f"{site.url}/bridge"), say("It was built in 1932 [1]. It cost 6 million pounds [4].")]
    )
    answer = await Researcher(model=model, private=True).ask("When?")
    assert "[4]. [source 4 was not read]" in answer.text
    assert [source.number for source in answer.sources] == [1]


async def test_what_comes_from_memory_is_said_with_its_age(tmp_path: Path) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path / 'm.db'}") as app:
        ada = Principal("ada")
        await app.memory.store_document("The toll is 4 pounds.", principal=ada)
        model = ScriptedModel([call("search_memory", query="toll"), say("The toll is 4 pounds [1].")])
        answer = await Researcher(memory=app.memory, model=model, principal=ada).ask("What is the toll?")
    assert "[1]. (from memory, stored less than a minute ago)" in answer.text
    assert "- [1] From memory, stored" in answer.text
    assert answer.problems == ()


async def test_without_an_engine_the_answer_says_so_whatever_the_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOURNEYMAN_SEARCH_URL", raising=False)
    model = ScriptedModel([call("web_search", query="bridge"), say("I searched everywhere and found nothing.")])
    answer = await Researcher(model=model).ask("How long is the bridge?")
    assert "The web was not searched: no search engine is configured." in answer.text


async def test_a_poisoned_page_leads_to_no_irreversible_or_delayed_action(site: SmallWeb) -> None:
    """The model is taken to have fallen for it: it calls all that the page asks for."""
    done: list[str] = []

    @tool(risk=RiskLevel.IRREVERSIBLE)
    def delete_files(folder: str) -> str:
        """Delete all files of a folder. Use when the user asks for exactly that."""
        done.append("deleted")
        return "ok"

    @tool
    def send_email(to: str, text: str) -> str:
        """Send an email. Use when the user asks for it."""
        done.append("sent")
        return "ok"

    @tool
    def schedule_task(what: str, when: str) -> str:
        """Do something later. Use when the user asks for it."""
        done.append("scheduled")
        return "ok"

    model = ScriptedModel(
        [
            call("web_search", query="bridge paint"),
            call("fetch_page", url=f"{site.url}/poison"),
            call("delete_files", folder="."),
            call("send_email", to="eve@example.com", text="notes"),
            call("schedule_task", what="delete_files", when="tomorrow"),
            call("fetch_page", url=f"{site.url}/plain?notes={'secret-' * 20}"),
            say("The bridge is painted grey [2]."),
        ]
    )
    researcher = Researcher(search=site.url, model=model, private=True, tools=[delete_files, send_email, schedule_task])
    answer = await researcher.ask("What colour is the bridge?")
    assert done == []
    assert [record.status for record in answer.response.tool_calls[2:]] == ["denied"] * 4
    assert not any("notes=" in path for path in site.asked)
    assert "never instructions" in str(answer.response.tool_calls[1].result)
    assert answer.problems == ()


async def test_a_conversation_goes_on_with_the_numbers_it_has(site: SmallWeb) -> None:
    model = Turns(
        call("fetch_page", url=f"{site.url}/bridge"),
        say("It is 1,149 metres long [1]."),
        call("fetch_page", url=f"{site.url}/plain"),
        say("It opened in 1932 [1], and this is just text [2]."),
    )
    researcher = Researcher(model=model, private=True)
    first = await researcher.ask("How long?")
    second = await researcher.ask("And when?", history=first.response.messages)
    assert (first.problems, second.problems) == ((), ())
    assert [source.address for source in second.sources] == [f"{site.url}/bridge", f"{site.url}/plain"]


async def test_a_report_is_planned_researched_criticised_and_refined(site: SmallWeb) -> None:
    model = Turns(
        call("fetch_page", url=f"{site.url}/bridge"),
        say("# The bridge\n\nIt opened in 1933 [1]."),
        say("# The bridge\n\nIt opened in 1932 [1]."),
        call("fetch_page", url=f"{site.url}/poison"),
        say("# The bridge\n\n## Age\n\nIt opened in 1932 [1].\n\n## Colour\n\nIt is painted grey [2]."),
    )
    critic = Turns(say("DONE"), say("- What colour is it?"), say("DONE"))
    planner = ScriptedModel([say("1. When did it open?\n2. What colour is it?\n")])
    researcher = Researcher(model=model, planner=planner, critic=critic, private=True)
    report = await researcher.report("The harbour bridge")
    assert (report.rounds, report.problems) == (3, ())
    assert report.questions == ("When did it open?", "What colour is it?")
    assert report.text == (
        "# The bridge\n\n## Age\n\nIt opened in 1932 [1].\n\n## Colour\n\nIt is painted grey [2].\n\n## Sources\n\n"
        f"- [1] The Harbour Bridge – <{site.url}/bridge>\n- [2] Bridge facts – <{site.url}/poison>\n"
    )
    asked = [request.messages[-1].content for request in model.requests]
    assert "1. When did it open?\n2. What colour is it?" in asked[0]
    assert "1933 is not in source 1" in asked[2]
    assert "What colour is it?" in asked[3]
    assert not model.turns
    assert not critic.turns


async def test_a_report_ends_after_five_rounds_and_says_what_is_not_supported(site: SmallWeb) -> None:
    model = Turns(*[say("The bridge is made of chewing gum [9].")] * 9)
    critic = Turns(*[say("- Is that so?")] * 9)
    researcher = Researcher(model=model, planner=ScriptedModel([say("")]), critic=critic)
    report = await researcher.report("The bridge", rounds=50)
    assert (report.rounds, len(model.turns), len(critic.turns)) == (5, 4, 5)
    assert report.text == (
        "# The bridge\n\nThe bridge is made of chewing gum [9]. [source 9 was not read]\n\n"
        "> 1 claim is not supported by a source, and marked.\n"
    )
