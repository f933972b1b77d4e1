"""APIs in the configuration file: reached, governed, changed by an edit, and held back until somebody agrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman.app.configuration import Configuration
from journeyman.app.trust import names_in, reasons
from journeyman.settings import SettingsError
from journeyman.settings.reading import read_settings
from tests.sources.mcp_servers import record_of
from tests.sources.openapi_apis import document, operation, serving


def written(folder: Path, openapi: str, more: str = "") -> Path:
    document(
        folder,
        {"/pets": {"get": operation("listPets"), "post": operation("createPet")}},
        components={"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
        security=[{"key": []}],
    )
    file = folder / "journeyman.yaml"
    file.write_text(f"version: 1\nopenapi:\n  shop: {openapi}\n{more}")
    return file


async def test_a_file_names_an_api_and_rules_for_its_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "file:not-a-${FILE}")
    async with serving() as address:
        entry = f"{{document: shop.json, base_url: '{address}/v1', auth: '${{SHOP_KEY}}', only: ['list*', create_pet]}}"
        more = (
            "tools: {'shop.create_*': {risk: reversible}, shop.list_pets: {rename: pets, result: {select: [target]}}}"
        )
        found = Configuration(written(tmp_path, entry, more))
        async with found.library as library:
            assert found.server_problems() == []
            assert sorted(library.names()) == ["pets", "shop.create_pet"]
            assert (await record_of(library, "pets")).result == {"target": "/v1/pets"}
            made = await record_of(library, "shop.create_pet", approver=None)
            assert made.result["headers"]["x-key"] == "***", "sent as it is, and masked in the answer"


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{document: shop.json}", "'base_url' is missing"),
        ("{document: shop.json, base_url: 'shop.example'}", "the base_url must begin with http://"),
        (
            "{document: shop.json, base_url: 'https://shop.example', auth: sk-abcdefghijklmnop1234567890ABCD}",
            "auth",
        ),
        ("{document: shop.json, base_url: 'https://shop.example', auth: '${NOT_SET_HERE}'}", "NOT_SET_HERE is not set"),
    ],
)
def test_what_is_wrong_with_an_api_is_said_where_it_stands(tmp_path: Path, entry: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as caught:
        Configuration(written(tmp_path, entry))
    assert "journeyman.yaml:3:" in str(caught.value)


async def test_names_that_fit_no_operation_are_problems(tmp_path: Path) -> None:
    entry = "{document: shop.json, base_url: 'https://shop.example', only: [listPats, createPet]}"
    found = Configuration(written(tmp_path, entry))
    async with found.library as library:
        [problem] = found.server_problems()
        assert library.names() == ["shop.create_pet"]
    assert "'only' names 'listPats', and no operation is called so; there is listPets" in problem.message


async def test_a_document_that_cannot_be_read_breaks_nothing_else(tmp_path: Path) -> None:
    file = written(tmp_path, "{document: shop.json, base_url: 'https://shop.example'}")
    file.write_text(f"{file.read_text()}  gone: {{document: gone.json, base_url: 'https://gone.example'}}\n")
    found = Configuration(file)
    async with found.library as library:
        [problem] = found.server_problems()
        assert library.names() == ["shop.list_pets", "shop.create_pet"]
    assert problem.key == "openapi.gone.document"


def test_one_name_stands_for_one_source(tmp_path: Path) -> None:
    entry = "{document: shop.json, base_url: 'https://shop.example'}"
    with pytest.raises(SettingsError, match="'shop' stands under 'mcp' and under 'openapi'"):
        Configuration(written(tmp_path, entry, "mcp: {shop: {command: [x]}}"))


async def test_an_edit_that_calls_another_address_waits_until_somebody_agrees(tmp_path: Path) -> None:
    file = written(tmp_path, "{document: shop.json, base_url: 'https://shop.example'}")
    [name] = names_in(read_settings(file))
    assert reasons([name]) == ["calls https://shop.example as shop.json says"]
    found = Configuration(file, gate=lambda _, names: names)
    written(tmp_path, "{document: shop.json, base_url: 'https://evil.example'}")
    assert not await found.take_over(file.read_bytes())
    assert "nobody has agreed" in str(found.problems[0])
    written(tmp_path, "{document: shop.json, base_url: 'https://shop.example', timeout_seconds: 7}")
    assert await found.take_over(file.read_bytes())
