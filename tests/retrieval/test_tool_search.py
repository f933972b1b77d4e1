"""Tools by words, and by meaning where there is an embedder."""

from journeyman import ToolLibrary, tool
from journeyman.retrieval.embedders import default_embedder


@tool
def get_weather(city: str) -> str:
    """The forecast for a city: temperature, rain and wind."""
    return city


@tool
def send_email(to: str, body: str) -> str:
    """Send an email message to a person."""
    return to


async def test_find_ranks_like_search_without_an_embedder() -> None:
    library = ToolLibrary([get_weather, send_email])
    text = "email the forecast to a person"
    assert [t.name for t, _ in await library.find(text)] == [t.name for t, _ in library.search(text)]
    assert {hit.similarity for _, hit in await library.find(text)} == {None}


async def test_find_knows_a_tool_by_meaning() -> None:
    library = ToolLibrary([get_weather, send_email], embedder=default_embedder())
    assert library.search("Do I need an umbrella today?") == []
    assert (await library.find("Do I need an umbrella today?", k=1))[0][0].name == "get_weather"


async def test_a_tool_registered_later_is_found() -> None:
    library = ToolLibrary([get_weather], embedder=default_embedder())
    await library.find("anything")
    library.register(send_email)
    assert (await library.find("write to Ana", k=1))[0][0].name == "send_email"


async def test_a_view_finds_only_its_own_tools_with_the_same_embedder() -> None:
    view = ToolLibrary([get_weather, send_email], embedder=default_embedder()).only(["send_email"])
    found = await view.find("Do I need an umbrella today?")
    assert [(t.name, hit.similarity is not None) for t, hit in found] == [("send_email", True)]
