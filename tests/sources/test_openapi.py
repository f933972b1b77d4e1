"""Documents of OpenAPI as tools, called against a server on the loopback."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import BodyPartReader, web

from journeyman import ConfigurationError, Deny, RiskLevel, ToolLibrary
from journeyman.sources import OpenApi
from tests.sources.mcp_servers import record_of
from tests.sources.openapi_apis import document, operation, serving, takes

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}
OBJECT = {"type": "object", "additionalProperties": TEXT}


def parameter(name: str, place: str, schema: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": place == "path", **more}


async def asked(tmp_path: Path, path: str, said: dict[str, Any], arguments: dict[str, Any], **more: Any) -> Any:
    """What the server was sent for one call of one operation."""
    method = more.pop("method", "get")
    options = more.pop("options", {})
    file = document(tmp_path, {path: {method: said}}, **more)
    async with (
        serving() as address,
        ToolLibrary(sources=[OpenApi(file, base_url=f"{address}/v1", **options)]) as library,
    ):
        [name] = library.names()
        record = await record_of(library, name, **arguments)
    assert record.success, record.error
    return record.result


# --- what becomes of a document


async def test_operations_are_tools_with_names_for_models_and_risks_by_their_methods(tmp_path: Path) -> None:
    file = document(
        tmp_path,
        {
            "/pets": {"get": operation("listPets"), "post": operation("createPet"), "head": operation("HEADPets")},
            "/pets/{id}": {
                "delete": operation("deletePet"),
                "put": {"summary": "No name."},
                "get": operation("list_pets"),
            },
            "/send": {"get": operation("sendMessage")},
            "/long": {"get": operation("a_very_long_name_" * 8)},
        },
    )
    async with ToolLibrary(sources=[OpenApi(file, base_url="https://shop.example")]) as library:
        found = {item.name: item for item in library.specifications()}
        assert not library.problems()
    assert list(found)[:6] == [
        "shop.list_pets",
        "shop.head_pets",
        "shop.create_pet",
        "shop.list_pets_2",
        "shop.put_pets_by_id",
        "shop.delete_pet",
    ]
    assert all(len(name) <= 64 and item.name_for_models == name.replace(".", "_") for name, item in found.items())
    assert found["shop.list_pets"].read_only
    assert found["shop.head_pets"].read_only
    assert found["shop.delete_pet"].risk is RiskLevel.IRREVERSIBLE
    assert found["shop.create_pet"].risk is None
    assert not found["shop.create_pet"].read_only
    assert not found["shop.send_message"].read_only, "some APIs do everything with GET"
    assert found["shop.list_pets_2"].parameters["required"] == ["id"], "the path needs it, though nobody declares it"


async def test_only_takes_operations_by_their_own_names_and_ours(tmp_path: Path) -> None:
    paths = {f"/{name}": {"post": operation(name)} for name in ("getA", "getB", "createPet", "dropAll")}
    file = document(tmp_path, paths)
    source = OpenApi(file, base_url="https://shop.example", only=["get*", "createPet", "drop_*"])
    async with ToolLibrary(sources=[source]) as library:
        assert library.names() == ["shop.get_a", "shop.get_b", "shop.create_pet", "shop.drop_all"]
    source = OpenApi(file, base_url="https://shop.example", only=["getA"], name="other")
    async with ToolLibrary(sources=[source]) as library:
        assert library.names() == ["other.get_a"]


async def test_schemas_of_3_0_become_json_schema_and_references_stay_within_the_document(tmp_path: Path) -> None:
    schemas = {
        "Pet": {
            "type": "object",
            "required": ["id", "name"],
            "properties": {
                "id": {"type": "integer", "readOnly": True},
                "name": {"type": "string", "nullable": True, "example": "Rex"},
                "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                "parent": {"$ref": "#/components/schemas/Pet"},
                "tags": {"type": "array", "items": {"$ref": "#/components/schemas/a~1b"}},
            },
        },
        "a/b": {"type": "string", "enum": ["x", "y"]},
    }
    file = document(
        tmp_path,
        {
            "/pets": {"post": operation("create", **takes("application/json", {"$ref": "#/components/schemas/Pet"}))},
            "/bad": {"post": operation("bad", **takes("application/json", {"$ref": "other.yaml#/Pet"}))},
            "/lost": {"post": operation("lost", **takes("application/json", {"$ref": "#/components/schemas/No"}))},
            "/loop": {"get": operation("loop", {"$ref": "#/components/parameters/A"})},
        },
        version="3.0.3",
        components={"schemas": schemas, "parameters": {"A": {"$ref": "#/components/parameters/A"}}},
    )
    async with ToolLibrary(sources=[OpenApi(file, base_url="https://shop.example")]) as library:
        tool = library["shop.create"]
        problems = {problem.tool: problem.message for problem in library.problems()}
        properties = tool.specification.parameters["properties"]
    assert list(properties) == ["name", "age", "parent", "tags"], "what is only read is not asked for"
    assert properties["name"] == {"type": ["string", "null"]}
    assert properties["age"] == {"type": "integer", "exclusiveMinimum": 0}
    assert tool.specification.parameters["required"] == ["name"]
    assert tool.freeze('{"name": null, "parent": {"name": "Rex", "parent": {"name": "Old"}}, "tags": ["x"]}')
    with pytest.raises(ValueError, match="tags"):
        tool.freeze('{"name": "a", "tags": ["z"]}')
    assert "leads nowhere" in problems["shop.bad"]  # there is no such file
    assert "leads nowhere" in problems["shop.lost"]
    assert "leads back to itself" in problems["shop.loop"]


async def test_references_lead_to_files_of_the_folder_and_to_nothing_outside(tmp_path: Path) -> None:
    folder, outside = tmp_path / "api", tmp_path / "secret.json"
    (folder / "schemas").mkdir(parents=True)
    outside.write_text(json.dumps({"Pet": {"type": "object", "properties": {"stolen": TEXT}}}))
    (folder / "link.json").symlink_to(outside)
    (folder / "broken.json").write_text("{")
    # References begin at their own file: to itself, beside it, and back to the document.
    (folder / "schemas" / "pet.yaml").write_text(
        "Pet:\n  type: object\n  required: [name]\n  properties:\n    name: {$ref: '#/Name'}\n"
        "    size: {$ref: sizes.json}\n    owner: {$ref: '../openapi.json#/components/schemas/Owner'}\n"
        "    like: {$ref: 'pet.yaml#/Pet'}\nName: {type: string, maxLength: 5}\n"
    )
    (folder / "schemas" / "sizes.json").write_text('{"enum": ["small", "large"]}')
    (folder / "item.yaml").write_text("get:\n  operationId: item\n  responses: {'200': {description: ok}}\n")
    refused = {"bad": "../secret.json#/Pet", "linked": "link.json#/Pet", "far": "https://a.example/x.json#/Pet"}
    refused |= {"root": str(outside), "file": f"file://{outside}", "broken": "broken.json#/Pet"}
    file = document(
        folder,
        {
            "/pets": {"post": operation("create", **takes("application/json", {"$ref": "schemas/pet.yaml#/Pet"}))},
            "/item": {"$ref": "item.yaml"},
            **{
                f"/{name}": {"post": operation(name, **takes("application/json", {"$ref": to}))}
                for name, to in refused.items()
            },
        },
        components={"schemas": {"Owner": {"type": "string", "maxLength": 7}}},
    ).rename(folder / "openapi.json")
    async with ToolLibrary(sources=[OpenApi(file, name="shop", base_url="https://shop.example")]) as library:
        tool, names = library["shop.create"], set(library.names())
        problems = {problem.tool: problem.message for problem in library.problems()}
    assert names == {"shop.create", "shop.item"}
    assert tool.freeze('{"name": "Rex", "size": "small", "owner": "Ada", "like": {"name": "Old"}}')
    for wrong in ('{"name": "too long"}', '{"name": "a", "size": "x"}', '{"name": "a", "owner": "too long"}'):
        with pytest.raises(ValueError, match=r"name|size|owner"):
            tool.freeze(wrong)
    assert {str(name).removeprefix("shop.") for name in problems} == refused.keys()
    assert all(
        "leads out of the document or its folder" in problems[f"shop.{name}"] for name in refused if name != "broken"
    )
    assert "stolen" not in str(problems)


async def test_a_schema_without_end_is_cut_and_the_api_checks_the_rest(tmp_path: Path) -> None:
    schemas: dict[str, Any] = {
        f"S{number}": {
            "type": "object",
            "properties": {f"next_{each}": {"$ref": f"#/components/schemas/S{number * 3 + each}"} for each in range(3)}
            | {"text": {"type": "string", "description": "long " * 100}},
        }
        for number in range(400)
    }
    for number in range(400, 1300):
        schemas[f"S{number}"] = {"type": "string"}
    deep: Any = {"type": "string"}
    for _ in range(80):
        deep = {"type": "array", "items": deep}
    file = document(
        tmp_path,
        {
            "/a": {"post": operation("wide", **takes("application/json", {"$ref": "#/components/schemas/S0"}))},
            "/b": {"post": operation("deep", **takes("application/json", deep))},
        },
        components={"schemas": schemas},
    )
    async with ToolLibrary(sources=[OpenApi(file, base_url="https://shop.example")]) as library:
        assert len(json.dumps(library["shop.wide"].specification.parameters)) < 60_000
        assert library["shop.wide"].freeze('{"next_1": {"next_1": {"text": "a"}}}')
        assert library["shop.deep"].specification.parameters["required"] == ["body"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"swagger": "2.0", "paths": {}}', "says version '2.0'; a document of OpenAPI 3.0 or 3.1 is needed"),
        ('{"info": {}}', "has no 'openapi'"),
        ('{"openapi": "3.1.0"}', "has no 'paths'"),
        ("a: [", "neither JSON nor YAML"),
        ("!!python/object/apply:os.system [ls]", "neither JSON nor YAML"),
        ('{"openapi": "3.1.0", "paths": {}, "servers": [{"url": "/v1"}]}', "give a base_url"),
        (
            '{"openapi": "3.1.0", "paths": {}, "servers": [{"url": "http://169.254.169.254/"}]}',
            "is no address that a tool may fetch from",
        ),
        (
            '{"openapi": "3.1.0", "paths": {}, "servers": [{"url": "http://127.0.0.1:1/"}]}',
            "is no address that a tool may fetch from",
        ),
    ],
)
async def test_what_cannot_be_used_is_said(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=why.replace("(", "\\(")):
        await ToolLibrary(sources=[OpenApi(file)]).open()


async def test_yaml_is_read_as_json_has_it_and_a_document_at_an_address_names_its_server(tmp_path: Path) -> None:
    text = """
openapi: 3.0.1
servers: [{url: '{stage}/v2', variables: {stage: {default: /api}}}]
paths:
  /days/{day}:
    get:
      operationId: getDay
      parameters:
      - {name: day, in: path, required: true, schema: {type: string, enum: [2020-01-01, no, on]}}
"""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/openapi.yaml":
            return web.Response(text=text)
        return web.json_response(request.raw_path)

    async with (
        serving(answer) as address,
        ToolLibrary(sources=[OpenApi(f"{address}/openapi.yaml", name="days")]) as library,
    ):
        record = await record_of(library, "days.get_day", day="2020-01-01")
        assert library["days.get_day"].freeze('{"day": "no"}')
    assert record.result == "/api/v2/days/2020-01-01"


# --- where arguments go


@pytest.mark.parametrize(
    ("said", "value", "target"),
    [
        (parameter("x", "query"), "a b&c=d/é", "x=a%20b%26c%3Dd%2F%C3%A9"),
        (parameter("x", "query", allowReserved=True), "a/b:c&d", "x=a/b:c%26d"),
        (parameter("x", "query", {"type": "boolean"}), True, "x=true"),
        (parameter("x", "query", {"type": "number"}), 1.5, "x=1.5"),
        (parameter("x", "query", LIST), ["a", "b,c"], "x=a&x=b%2Cc"),
        (parameter("x", "query", LIST, explode=False), ["a", "b,c"], "x=a,b%2Cc"),
        (parameter("x", "query", LIST, style="spaceDelimited", explode=False), ["a", "b"], "x=a%20b"),
        (parameter("x", "query", LIST, style="pipeDelimited", explode=False), ["a", "b"], "x=a%7Cb"),
        (parameter("x", "query", OBJECT), {"g": "1", "r": "2"}, "g=1&r=2"),
        (parameter("x", "query", OBJECT, explode=False), {"g": "1", "r": "2"}, "x=g,1,r,2"),
        (parameter("x", "query", OBJECT, style="deepObject"), {"g": "1", "r": "2"}, "x%5Bg%5D=1&x%5Br%5D=2"),
        (
            {"name": "x", "in": "query", "content": {"application/json": {"schema": OBJECT}}},
            {"r": "1"},
            "x=%7B%22r%22%3A%221%22%7D",
        ),
    ],
)
async def test_a_query_is_written_in_its_style(tmp_path: Path, said: Any, value: Any, target: str) -> None:
    sent = await asked(tmp_path, "/a", operation("find", said), {"x": value})
    assert sent["target"] == f"/v1/a?{target}"


@pytest.mark.parametrize(
    ("style", "explode", "value", "target"),
    [
        ("simple", False, "a/b c", "a%2Fb%20c"),
        ("simple", False, ["a", "b"], "a,b"),
        ("simple", False, {"g": "1", "r": "2"}, "g,1,r,2"),
        ("simple", True, {"g": "1", "r": "2"}, "g=1,r=2"),
        ("label", False, "a", ".a"),
        ("label", False, ["a", "b"], ".a,b"),
        ("label", True, ["a", "b"], ".a.b"),
        ("label", True, {"g": "1", "r": "2"}, ".g=1.r=2"),
        ("label", False, {"g": "1", "r": "2"}, ".g,1,r,2"),
        ("matrix", False, "a", ";x=a"),
        ("matrix", False, ["a", "b"], ";x=a,b"),
        ("matrix", True, ["a", "b"], ";x=a;x=b"),
        ("matrix", False, {"g": "1", "r": "2"}, ";x=g,1,r,2"),
        ("matrix", True, {"g": "1", "r": "2"}, ";g=1;r=2"),
    ],
)
async def test_a_path_is_written_in_its_style(
    tmp_path: Path, style: str, explode: bool, value: Any, target: str
) -> None:
    said = operation("find", parameter("x", "path", {}, style=style, explode=explode))
    sent = await asked(tmp_path, "/a/{x}/b", said, {"x": value})
    assert sent["target"] == f"/v1/a/{target}/b"


@pytest.mark.parametrize("value", ["", "..", ".", " .. "])
async def test_no_value_leads_to_another_path(tmp_path: Path, value: str) -> None:
    file = document(tmp_path, {"/a/{x}": {"delete": operation("drop", parameter("x", "path"))}})
    async with serving() as address, ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        record = await record_of(library, "shop.drop", x=value)
    assert record.error is not None
    assert record.error.code == "INVALID_ARGUMENT"


async def test_headers_and_cookies_are_sent_and_names_that_clash_are_told_apart(tmp_path: Path) -> None:
    said = operation(
        "put",
        parameter("id", "path"),
        parameter("id", "query"),
        parameter("X-Trace", "header"),
        parameter("filter[a]", "query"),
        parameter("seen", "cookie"),
        parameter("Authorization", "header"),
        **takes("application/json", {"type": "object", "properties": {"id": TEXT}}),
    )
    arguments = {"id": "1", "query_id": "2", "X-Trace": "t", "filter_a": "f", "seen": "s s", "body_id": "3"}
    sent = await asked(tmp_path, "/a/{id}", said, arguments, method="put")
    assert sent["target"] == "/v1/a/1?id=2&filter%5Ba%5D=f"
    assert (sent["headers"]["x-trace"], sent["headers"]["cookie"]) == ("t", "seen=s%20s")
    assert "authorization" not in sent["headers"]
    assert json.loads(sent["body"]) == {"id": "3"}
    file = document(tmp_path, {"/a/{id}": {"put": said}})
    async with serving() as address, ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        record = await record_of(library, "shop.put", **{**arguments, "X-Trace": "a\r\nHost: evil"})
    assert record.error is not None
    assert "line breaks" in record.error.message


async def test_defaults_are_told_and_not_sent(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"name": TEXT, "kind": {"type": "string", "default": "dog"}}}
    said = operation("change", **takes("application/json", schema))
    sent = await asked(tmp_path, "/a", said, {"name": "Rex"}, method="patch")
    assert json.loads(sent["body"]) == {"name": "Rex"}, "a default would have changed what is there"


# --- bodies


async def test_bodies_are_json_forms_text_or_files(tmp_path: Path) -> None:
    fields = {"type": "object", "required": ["a"], "properties": {"a": TEXT, "tags": LIST, "deep": OBJECT}}
    sent = await asked(
        tmp_path, "/a", operation("x", **takes("application/vnd.shop+json", fields)), {"a": "1"}, method="post"
    )
    assert (sent["headers"]["content-type"], sent["body"]) == ("application/vnd.shop+json", '{"a":"1"}')
    form = takes("application/x-www-form-urlencoded", fields, encoding={"deep": {"style": "deepObject"}})
    arguments: dict[str, Any] = {"a": "1 &", "tags": ["x", "y"], "deep": {"k": "v"}}
    sent = await asked(tmp_path, "/a", operation("x", **form), arguments, method="post")
    assert sent["body"] == "a=1%20%26&tags=x&tags=y&deep%5Bk%5D=v"
    sent = await asked(
        tmp_path, "/a", operation("x", **takes("application/xml", fields)), {"body": "<a/>"}, method="post"
    )
    assert (sent["headers"]["content-type"], sent["body"]) == ("application/xml", "<a/>")
    array = takes("application/json", {"type": "array", "items": TEXT})
    sent = await asked(tmp_path, "/a", operation("x", **array), {"body": ["a"]}, method="post")
    assert sent["body"] == '["a"]'
    optional = takes("application/json", fields, required=False)
    sent = await asked(tmp_path, "/a", operation("x", **optional), {}, method="post")
    assert sent["body"] == ""
    picture = base64.b64encode(b"\x89PNG").decode()
    binary = takes("image/*", {"type": "string", "format": "binary"})
    given = {"body": {"data": picture, "mime_type": "image/png"}}
    sent = await asked(tmp_path, "/a", operation("x", **binary), given, method="put")
    assert sent["headers"]["content-type"] == "image/png"
    assert sent["body"].endswith("PNG")


async def test_files_are_uploaded_in_parts(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        parts = []
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            kind = part.headers.get("content-type", "")
            parts.append([part.name, part.filename, kind, (await part.read()).decode()])
        return web.json_response(parts)

    schema = {
        "type": "object",
        "required": ["file"],
        "properties": {
            "file": {"type": "string", "format": "binary"},
            "more": {"type": "array", "items": {"type": "string", "contentMediaType": "application/octet-stream"}},
            "about": {"type": "object", "properties": {"title": TEXT}},
            "count": {"type": "integer"},
        },
    }
    file = document(tmp_path, {"/a": {"post": operation("upload", **takes("multipart/form-data", schema))}})
    async with serving(answer) as address, ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        record = await record_of(
            library,
            "shop.upload",
            file={"filename": "a.txt", "mime_type": "text/plain", "text": "hello"},
            more=[{"data": base64.b64encode(b"raw").decode()}],
            about={"title": "A"},
            count=3,
        )
        wrong = await record_of(library, "shop.upload", file={"data": "no base64!"})
    assert record.result[0] == ["file", "a.txt", "text/plain", "hello"]
    assert record.result[1] == ["more", "more", "application/octet-stream", "raw"]
    assert record.result[2] == ["about", None, "application/json", '{"title":"A"}']
    assert (record.result[3][0], record.result[3][3]) == ("count", "3")
    assert wrong.error is not None
    assert "not base64" in wrong.error.message


# --- who we are


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ({"type": "http", "scheme": "bearer"}, ("authorization", "Bearer ada:secret-word")),
        ({"type": "oauth2", "flows": {}}, ("authorization", "Bearer ada:secret-word")),
        ({"type": "openIdConnect"}, ("authorization", "Bearer ada:secret-word")),
        (
            {"type": "http", "scheme": "Basic"},
            ("authorization", f"Basic {base64.b64encode(b'ada:secret-word').decode()}"),
        ),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, ("x-key", "ada:secret-word")),
        ({"type": "apiKey", "in": "cookie", "name": "key"}, ("cookie", "key=ada:secret-word")),
        ({"type": "apiKey", "in": "query", "name": "key"}, ("target", "/a?key=ada%3Asecret-word")),
    ],
)
async def test_a_secret_goes_where_its_scheme_says_and_comes_back_in_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: Any, expected: tuple[str, str]
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "ada:secret-word")
    seen: dict[str, str] = {}

    async def answer(request: web.Request) -> web.Response:
        seen.update({name.lower(): value for name, value in request.headers.items()}, target=request.raw_path)
        return web.json_response(seen)

    file = document(
        tmp_path,
        {"/a": {"get": operation("a")}, "/open": {"get": operation("open", security=[])}},
        components={"securitySchemes": {"it": scheme}},
        security=[{"it": []}],
    )
    async with serving(answer) as address:
        source = OpenApi(file, auth="${SHOP_TOKEN}", base_url=address)
        async with ToolLibrary(sources=[source]) as library:
            record = await record_of(library, "shop.a")
            assert seen[expected[0]] == expected[1]
            seen.clear()
            await record_of(library, "shop.open")
            assert "secret-word" not in json.dumps(seen)
            assert "authorization" not in seen
    assert "secret-word" not in json.dumps(record.result)


async def test_several_schemes_take_a_secret_each(tmp_path: Path) -> None:
    said = operation("a", security=[{"missing": []}, {"key": [], "app": []}])
    schemes = {name: {"type": "apiKey", "in": "header", "name": f"X-{name}"} for name in ("missing", "key", "app")}
    auth = {"key": "kkkkkkkk", "app": "aaaaaaaa"}
    seen: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append([request.headers.get(f"X-{name}") for name in schemes])
        return web.json_response(1)

    file = document(tmp_path, {"/a": {"get": said}}, components={"securitySchemes": schemes})
    async with serving(answer) as address, ToolLibrary(sources=[OpenApi(file, base_url=address, auth=auth)]) as library:
        await record_of(library, "shop.a")
    assert seen == [[None, "kkkkkkkk", "aaaaaaaa"]]


async def test_a_secret_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    file = document(tmp_path, {})
    with pytest.raises(ConfigurationError, match="SHOP_TOKEN is not set"):
        await ToolLibrary(sources=[OpenApi(file, base_url="https://shop.example", auth="${SHOP_TOKEN}")]).open()


# --- answers


async def answered(tmp_path: Path, response: web.Response, *, method: str = "get", **arguments: Any) -> Any:
    async def answer(_: web.Request) -> web.Response:
        return response

    file = document(tmp_path, {"/a": {method: operation("a", parameter("page", "query"))}})
    async with serving(answer) as address, ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        return await record_of(library, "shop.a", **arguments)


async def test_errors_say_status_and_body_within_bounds(tmp_path: Path) -> None:
    record = await answered(tmp_path, web.Response(status=404, text="no such pet" + "x" * 9_000))
    assert record.error.code == "HTTP_404"
    assert "404 Not Found: no such pet" in record.error.message
    assert len(record.error.message) < 2_200
    record = await answered(tmp_path, web.Response(status=429, headers={"Retry-After": "7"}), method="post")
    assert (record.error.category, record.error.retry_after) == ("rate_limit", 7)
    record = await answered(tmp_path, web.Response(status=500), method="post")
    assert "may have taken effect" in record.error.recover_action
    assert not record.error.retryable


async def test_answers_are_values_texts_or_media(tmp_path: Path) -> None:
    assert (await answered(tmp_path, web.Response(text="plain"))).result == "plain"
    assert (await answered(tmp_path, web.json_response([1]))).result == [1]
    gone = web.Response(status=204)
    assert (await answered(tmp_path, gone, method="delete")).result["status"] == 204
    picture = web.Response(body=b"\x89PNG\r\n\x1a\n", content_type="image/png")
    [medium] = (await answered(tmp_path, picture)).result["media"]
    assert (medium["mime_type"], medium["bytes"]) == ("image/png", 8)
    large = await answered(tmp_path, web.Response(text="x" * 4_100_000))
    assert large.error.code == "RESULT_TOO_LARGE"


async def test_the_next_page_is_told_and_not_fetched(tmp_path: Path) -> None:
    links = '<https://shop.example/a?page=3>; rel="last", </a?page=2>; rel="next"'
    record = await answered(tmp_path, web.json_response(["x"], headers={"Link": links}))
    assert record.result == {"result": ["x"], "next_page": {"page": "2"}}


async def test_redirects_are_followed_by_reads_to_the_same_server_alone(tmp_path: Path) -> None:
    seen: list[str] = []
    to = "/b"

    async def answer(request: web.Request) -> web.Response:
        seen.append(f"{request.method} {request.path} {request.headers.get('Authorization')}")
        if request.path == "/a":
            return web.Response(status=302, headers={"Location": to})
        return web.json_response("here")

    file = document(tmp_path, {"/a": {"get": operation("read"), "post": operation("write")}})
    async with (
        serving(answer) as address,
        serving(answer) as other,
        ToolLibrary(sources=[OpenApi(file, base_url=address, auth="secret-token")]) as library,
    ):
        assert (await record_of(library, "shop.read")).result == "here"
        written = await record_of(library, "shop.write")
        to = f"{other}/b"
        abroad = await record_of(library, "shop.read")
    assert written.error is not None
    assert written.error.code == "REDIRECTED"
    assert abroad.error is not None
    assert "which is not followed" in abroad.error.message
    assert seen[:2] == ["GET /a Bearer secret-token", "GET /b Bearer secret-token"]
    assert len(seen) == 4


async def test_a_change_whose_answer_is_lost_is_unknown_and_one_that_never_left_is_not(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    file = document(tmp_path, {"/a": {"post": operation("write")}})
    async with serving(answer) as address, ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        lost = await record_of(library, "shop.write")
    async with ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        never = await record_of(library, "shop.write")
    assert lost.status == "unknown"
    assert never.status == "error"
    assert never.error is not None
    assert never.error.code == "API_UNREACHABLE"


async def test_a_key_against_repetition_is_ours_to_give(tmp_path: Path) -> None:
    said = operation("pay", parameter("Idempotency-Key", "header", required=True))
    file = document(tmp_path, {"/a": {"post": said}})
    async with serving() as address, ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        record = await record_of(library, "shop.pay")
        assert library["shop.pay"].specification.idempotent
    assert record.result["headers"]["idempotency-key"]


async def test_changes_are_asked_about_and_what_is_read_is_untrusted(tmp_path: Path) -> None:
    async def no(_: Any) -> Deny:
        return Deny(reason="not now")

    file = document(tmp_path, {"/a": {"post": operation("write"), "get": operation("read")}})
    async with serving() as address, ToolLibrary(sources=[OpenApi(file, base_url=address)]) as library:
        denied = await record_of(library, "shop.write", approver=no)
        free = await record_of(library, "shop.read", approver=no)
    assert (denied.status, free.status) == ("denied", "success")
    assert free.label is not None
    assert free.label.writer == "untrusted"


async def test_operations_served_elsewhere_need_to_be_told_where(tmp_path: Path) -> None:
    file = document(
        tmp_path,
        {"/a": {"get": operation("a", servers=[{"url": "https://other.example"}])}},
        servers=[{"url": "https://shop.example"}],
    )
    async with ToolLibrary(sources=[OpenApi(file)]) as library:
        assert not library.names()
        assert "served elsewhere" in library.problems()[0].message


async def test_a_document_that_is_wrong_in_one_place_is_right_in_the_others(tmp_path: Path) -> None:
    body = {"type": "object", "properties": {"a": {"type": "object", "required": True, "properties": {"b": TEXT}}}}
    file = document(
        tmp_path,
        {
            "/odd": {
                "get": {"operationId": "odd", "parameters": 5, "requestBody": []},
                "parameters": [None, {"in": 1}],
            },
            "/old": {"post": operation("old", **takes("application/json", body))},
            "/wrong": {"post": operation("wrong", parameter("x", "query", {"type": ["nonsense"]}))},
            "/none": None,
        },
    )
    async with ToolLibrary(sources=[OpenApi(file, base_url="https://shop.example")]) as library:
        assert library.names() == ["shop.odd", "shop.old"]
        [problem] = library.problems()
    assert problem.tool == "shop.wrong"


async def test_yaml_merges_what_it_names_twice(tmp_path: Path) -> None:
    file = tmp_path / "merged.yaml"
    file.write_text(
        "openapi: 3.0.0\nx-limit: &limit {name: limit, in: query, schema: {type: integer}}\n"
        "paths:\n  /a:\n    get:\n      operationId: a\n      parameters: [{<<: *limit, required: true}]\n"
    )
    async with ToolLibrary(sources=[OpenApi(file, base_url="https://shop.example")]) as library:
        assert library["merged.a"].specification.parameters["required"] == ["limit"]


async def test_a_document_of_aliases_of_aliases_is_bounded(tmp_path: Path) -> None:
    lines = ["openapi: 3.0.0", "x-0: &x0 {type: string}"]
    lines += [
        f"x-{n}: &x{n} {{type: object, properties: {{" + ", ".join(f"p{i}: *x{n - 1}" for i in range(9)) + "}}"
        for n in range(1, 12)
    ]
    schema = "{content: {application/json: {schema: *x11}}, required: true}"
    lines += ["paths: {/a: {post: {operationId: a, requestBody: " + schema + "}}, /b: {get: {operationId: b}}}"]
    file = tmp_path / "bomb.yaml"
    file.write_text("\n".join(lines))
    async with ToolLibrary(sources=[OpenApi(file, base_url="https://shop.example")]) as library:
        assert library.names() == ["bomb.b"]
        assert "too large" in library.problems()[0].message
