"""The researcher's tools on a small web: what they read, what they refuse, and how sources are numbered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, AgentResponse, ConfigurationError, Journeyman, Principal, ToolLibrary, run
from journeyman.testing import ScriptedModel, call, say, together
from journeyman.toolkits.research import HttpSearch, ResearchTools, SearchResult, searxng
from journeyman.toolkits.research.pages import read_page
from journeyman.toolkits.research.sources import results_of, sources_of
from tests.toolkits.research_web import SmallWeb, small_web

ADA = Principal("ada")


@pytest.fixture
async def site() -> AsyncIterator[SmallWeb]:
    async with small_web() as opened:
        yield opened


async def played(tools: ResearchTools, *turns: Any, **options: Any) -> AgentResponse:
    agent = Agent(name="reader", instruction="Read.", tools=tools.tools())
    return await run(agent, "Look it up", model=ScriptedModel([*turns, say("Done.")]), **options)


def error_of(response: AgentResponse, at: int = -1) -> str:
    error = response.tool_calls[at].error
    assert error is not None, response.tool_calls[at]
    return error.code


async def test_a_search_and_its_pages_are_read_and_numbered_by_address(site: SmallWeb) -> None:
    tools = ResearchTools(search=site.url, private=True)
    response = await played(
        tools,
        call("web_search", query="harbour bridge"),
        together(call("fetch_page", url=f"{site.url}/bridge"), call("fetch_page", url=f"{site.url}/plain")),
    )
    found = response.tool_calls[0].result["results"]
    assert [(item["source"], item["title"]) for item in found] == [(1, "The Harbour Bridge"), (2, "Bridge facts")]
    page, plain = (record.result for record in response.tool_calls[1:])
    assert (page["source"], plain["source"], plain["text"]) == (1, 3, "Just text.")
    assert page["title"] == "The Harbour Bridge"
    assert "opened on 19 March 1932 and is 1,149 metres long" in page["text"]
    assert "“the Coathanger”" in page["text"]
    for unseen in ("cheese", "color", "About us", "rights reserved", "delete all tasks"):
        assert unseen not in page["text"]
    assert page["links"] == [{"text": "locals", "url": f"{site.url}/people?page=2"}]
    sources = sources_of(results_of(response))
    assert "steel arch" in sources[1].text
    assert "Coathanger" in sources[1].text


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/nowhere", "FETCH_FAILED"),
        ("/picture", "NOT_TEXT"),
        ("/away", "ADDRESS_REFUSED"),
        ("/round", "FETCH_FAILED"),
    ],
)
async def test_a_page_that_cannot_be_read_is_an_error_the_model_can_act_on(
    site: SmallWeb, path: str, code: str
) -> None:
    response = await played(ResearchTools(private=True), call("fetch_page", url=f"{site.url}{path}"))
    assert error_of(response) == code


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/",
        "http://localhost:1/",
        "http://10.0.0.7/",
        "http://[::1]/",
        "http://2130706433/",
    ],
)
async def test_private_addresses_are_refused(url: str) -> None:
    response = await played(ResearchTools(), call("fetch_page", url=url))
    assert error_of(response) == "ADDRESS_REFUSED"


async def test_a_metadata_service_is_refused_before_it_is_even_asked_about() -> None:
    response = await played(ResearchTools(private=True), call("fetch_page", url="http://169.254.169.254/latest"))
    assert response.tool_calls[0].status == "denied"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.com/x", "http://", "http://[", "http://a:b@c.de/"]
)
async def test_what_is_no_web_address_is_refused(url: str) -> None:
    response = await played(ResearchTools(private=True), call("fetch_page", url=url))
    assert response.tool_calls[0].status in ("error", "denied")
    assert response.tool_calls[0].result is None


async def test_a_long_page_is_read_in_parts_and_a_huge_one_up_to_its_budget(site: SmallWeb) -> None:
    tools = ResearchTools(private=True)
    response = await played(
        tools,
        call("fetch_page", url=f"{site.url}/long"),
        call("fetch_page", url=f"{site.url}/long", offset=18_000),
        call("fetch_page", url=f"{site.url}/huge"),
        call("fetch_page", url=f"{site.url}/moved"),
    )
    first, second, huge, moved = (record.result for record in response.tool_calls)
    assert (first["next_offset"], second["next_offset"], first["source"]) == (18_000, 36_000, second["source"])
    assert huge["complete"] is False
    assert moved["url"] == f"{site.url}/bridge"


async def test_an_address_that_nobody_named_and_that_could_carry_data_needs_a_person(site: SmallWeb) -> None:
    stolen = f"{site.url}/plain?q={'my-secret-note-' * 8}"
    response = await played(ResearchTools(private=True), call("fetch_page", url=stolen))
    assert response.tool_calls[0].status == "denied"
    assert site.asked == []


async def test_without_an_engine_a_search_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOURNEYMAN_SEARCH_URL", raising=False)
    response = await played(ResearchTools(), call("web_search", query="anything"))
    error = response.tool_calls[0].error
    assert error is not None
    assert error.code == "NO_SEARCH_ENGINE"
    assert "JOURNEYMAN_SEARCH_URL" in str(error.user_guidance)


async def test_an_engine_that_fails_is_told_as_such(site: SmallWeb) -> None:
    site.search_status = 500
    response = await played(ResearchTools(search=site.url), call("web_search", query="x"))
    assert error_of(response) == "SEARCH_FAILED"
    closed = await played(ResearchTools(search="http://127.0.0.1:1"), call("web_search", query="x"))
    assert error_of(closed) == "SEARCH_FAILED"


async def test_the_engine_comes_from_the_environment_or_is_any_object(
    site: SmallWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNEYMAN_SEARCH_URL", f"{site.url}/search")
    response = await played(ResearchTools(), call("web_search", query="bridge", max_results=1))
    assert len(response.tool_calls[0].result["results"]) == 1
    assert site.asked == ["/search?q=bridge&format=json"]

    class Own:
        async def search(self, query: str, *, limit: int, token: str | None = None) -> list[SearchResult]:
            return [SearchResult("Own", "https://example.com/", query)] * 3

    response = await played(ResearchTools(search=Own()), call("web_search", query="bridge", max_results=2))
    assert [item["title"] for item in response.tool_calls[0].result["results"]] == ["Own", "Own"]


async def test_an_endpoint_with_other_names_and_a_token_is_described(
    site: SmallWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNEYMAN_SECRET_SEARCH_TOKEN", "a-token")
    engine = HttpSearch(
        f"{site.url}/find",
        parameter="query",
        parameters={"n": "5"},
        results="web.hits",
        title="name",
        address="link",
        snippet="text",
        token_header="X-Key",
    )
    response = await played(ResearchTools(search=engine), call("web_search", query="bridge"))
    [hit] = response.tool_calls[0].result["results"]
    assert (hit["title"], hit["url"], hit["snippet"]) == ("for bridge", "https://example.com/a", "key •••")
    with pytest.raises(ConfigurationError, match="no search endpoint"):
        searxng("searx.example")


async def test_files_are_read_below_their_folder_only(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.md").write_text("The key is under the mat.")
    (tmp_path / "in" / ".env").write_text("TOKEN=1")
    (tmp_path / "out.md").write_text("outside")
    response = await played(
        ResearchTools(root=tmp_path / "in"),
        call("read_file", path="notes.md"),
        call("read_file", path="../out.md"),
        call("read_file", path=".env"),
    )
    notes, outside, hidden = response.tool_calls
    assert (notes.result["source"], notes.result["text"]) == (1, "The key is under the mat.")
    assert outside.error is not None
    assert outside.error.code == "OUTSIDE_FOLDER"
    assert hidden.status == "denied"


async def test_memory_is_searched_by_either_name_and_stored_for_its_principal(tmp_path: Path) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path / 'm.db'}") as app:
        tools = ResearchTools(memory=app.memory)
        await app.memory.store_document("Bob's bridge is secret.", principal="bob")
        response = await played(
            tools,
            call("store_memory", text="The bridge is 1,149 metres long.", source="https://example.com"),
            call("memory_search", query="bridge length"),
            call("search_memory", query="length of the bridge"),
            principal=ADA,
        )
        stored, aliased, found = response.tool_calls
        assert [record.status for record in response.tool_calls] == ["success"] * 3
        [hit] = found.result["results"]
        assert (hit["document_id"], hit["age"]) == (stored.result["document_id"], "less than a minute")
        assert aliased.result["results"][0]["source"] == hit["source"] == 1
        document = await app.memory.get(hit["document_id"], principal=ADA)
        assert document is not None
        assert (document.metadata["stored_by"], document.metadata["source"]) == ("agent", "https://example.com")


async def test_tools_without_anything_behind_them_are_left_out() -> None:
    assert [tool.name for tool in ResearchTools().tools()] == ["web_search", "fetch_page", "get_current_time"]


async def test_a_run_reads_no_more_than_its_budget(site: SmallWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("journeyman.toolkits.research.tools.MOST_READS", 1)
    tools = ResearchTools(private=True)
    reads = [call("fetch_page", url=f"{site.url}/{name}") for name in ("plain", "bridge")]
    response = await played(tools, *reads)
    assert error_of(response) == "READING_BUDGET_SPENT"
    assert (await played(tools, reads[0])).tool_calls[0].status == "success"


def test_the_tools_have_nothing_to_lint(tmp_path: Path) -> None:
    class Nothing:
        semantic_search = store_document = None

    tools = ResearchTools(memory=Nothing(), root=tmp_path)  # type: ignore[arg-type]
    assert ToolLibrary(tools.tools()).lint() == []


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>a<p hidden>b<p>c", "a\n\nc"),
        ("a < b and <b>c</b> > d", "a < b and c > d"),
        ("x<!-- y --->z", "xz"),
        ("<SCRIPT>var a = '</p>'</SCRIPT >after", "after"),
        ("<div style='display: none'><div>a</div>b</div>c", "c"),
        ("<table><tr><td>a<td>b</table>", "a\nb"),
        ("<nav>menu", ""),
        ("<", ""),
        ("&lt;b&gt; &amp; &#8364;", "<b> & €"),
    ],
)
def test_odd_markup_gives_its_readable_text(markup: str, text: str) -> None:
    assert read_page(markup).text == text


@pytest.mark.parametrize("piece", ["<", "<a ", "<!--", "</p", "<p>", "&", "<a href=", '<a href="', "<nav>", "<title>"])
async def test_hostile_markup_takes_time_in_proportion_to_its_length(piece: str) -> None:
    # Quadratic, this would take minutes and end by the test's deadline.
    await asyncio.to_thread(read_page, piece * (1_000_000 // len(piece)))
