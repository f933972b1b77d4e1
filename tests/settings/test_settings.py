"""One file, typed: what is wrong with it and where, where its values come from, and what it never shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.policy import RateLimit
from journeyman.settings import SettingsError, find_file, read_settings
from journeyman.settings.document import MOST_BYTES
from journeyman.settings.reading import json_schema
from journeyman.settings.schema import Settings
from journeyman.settings.showing import setting_values

API = """\
version: 1
environment: production
store: postgresql://${PGUSER}@db/journeyman        # secrets only by ${ENV} or file:
model: openai:gpt-5-mini
approvals: {expire_after: 1d, grants: {uses: 20, for: 1h}}
categories: {slack_tools: {enabled: true, permissions: [slack:read]}}
tools:
  lookup_order: {import: "shop.tools:lookup_order", timeout_seconds: 10, rate_limit: 20/min, \
environments: {development: {enabled: false}}}
mcp:
  files: {command: ["npx", "@modelcontextprotocol/server-filesystem", "./data"], trust_annotations: false}
  crm: {url: "https://crm.example/mcp", headers: {Authorization: "Bearer ${CRM_TOKEN}"}}
"""
VARIABLES = {"PGUSER": "ada", "CRM_TOKEN": "crm-secret-value"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journeyman.yaml"


def problems(file: Path, text: str, environ: Mapping[str, str] | None = None, **options: Any) -> list[str]:
    """What is wrong, without the file's name."""
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_settings(file, environ=environ or {}, options=options)
    return [str(item).removeprefix(f"{file}:") for item in caught.value.problems]


def settings(file: Path, text: str, environ: Mapping[str, str] | None = None, **options: Any) -> Settings:
    file.write_text(text)
    return read_settings(file, environ=environ or {}, options=options).settings


def test_the_file_of_the_public_surface(file: Path) -> None:
    found = settings(file, API, VARIABLES)
    assert (found.environment, found.store, found.model) == (
        "production",
        "postgresql://${PGUSER}@db/journeyman",
        "openai:gpt-5-mini",
    )
    assert (found.approvals.expire_after, found.approvals.grants.uses, found.approvals.grants.for_) == (
        86_400,
        20,
        3600,
    )
    tool = found.tool("lookup_order")
    assert tool is not None
    assert tool.rate_limit == RateLimit(calls=20, seconds=60, burst=1)
    assert tool.enabled is None
    elsewhere = settings(file, API, {**VARIABLES, "JOURNEYMAN_ENVIRONMENT": "development"}).tool("lookup_order")
    assert elsewhere is not None
    assert elsewhere.enabled is False


def test_everything_that_is_wrong_is_told_at_once_with_line_column_key_and_what_was_meant(file: Path) -> None:
    text = """\
version: 1
enviroment: production
environment: prod
tools:
  lookup_order:
    timout_seconds: 10
    timeout_seconds: 500
    rate_limit: 20 per minute
    permissions: [orders read]
    environments: {developement: {enabled: false}}
  lookup_order: {}
approvals: {expire_after: soon, grants: {uses: 0}}
mcp:
  both: {url: "http://x", command: [y]}
doors: {http: {port: 70000}}
surprise: 1
"""
    assert problems(file, text) == [
        "2:1: enviroment: unknown key; did you mean 'environment'?",
        "3:1: environment: must be 'development', 'staging' or 'production', got \"prod\"; did you mean 'production'?",
        "6:5: tools.lookup_order.timout_seconds: unknown key; did you mean 'timeout_seconds'?",
        "7:5: tools.lookup_order.timeout_seconds: must be less than or equal to 300, got 500",
        '8:5: tools.lookup_order.rate_limit: must be a rate such as 20/min, 5/s or 100/10min, got "20 per minute"',
        "9:5: tools.lookup_order.permissions: permission 'orders read' is not well-formed; write it like "
        "'orders:write' or 'orders:*'",
        "10:20: tools.lookup_order.environments.developement: must be 'development', 'staging' or 'production', got "
        "\"developement\"; did you mean 'development'?",
        "11:3: tools.lookup_order: stands here twice; the first is in line 5",
        "12:13: approvals.expire_after: must be a duration such as 90s, 30m, 12h or 7d, or a number of seconds, got "
        '"soon"',
        "12:42: approvals.grants.uses: must be greater than 0, got 0",
        "14:3: mcp.both: give either 'command' or 'url'",
        "15:16: doors.http.port: must be less than or equal to 65535, got 70000",
        "16:1: surprise: unknown key; there are version, environment, store, model, agent, toolkits, tools, "
        "categories, intents, mcp, openapi, limits, policy, approvals, runs, learning, doors",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tools: {}", "1:1: version: 'version' is missing: write 'version: 1'"),
        ("version: 3", "1:1: version: must be 1, got 3"),
        ("version: 1\nmemory: {}", "unknown key"),
        ("version: 1\nplaybooks: {}", "unknown key"),
        ("- a", "a configuration consists of keys"),
        ("version: 1\ntools: [a]", "2:1: tools: must be a dictionary"),
        ("version: 1\ntools: {x: {timeout_seconds: 0.5}}", "must be greater than or equal to 1, got 0.5"),
        ("version: 1\ntools: {x: {rate_limit: 0/min}}", "must be greater than 0, got 0"),
        ("version: 1\ntools: {x: {rate_limits: {per_minute: -3}}}", "tools.x.rate_limits"),
        ("version: 1\nmcp: {x: {command: [a], headers: {a: b}}}", "'headers' and 'oauth' go with 'url'"),
        ("version: 1\nmcp: {x: {url: 'http://x', env: {a: b}}}", "'env' and 'cwd' go with 'command'"),
        ("version: 1\nruns: {retention: never}", "must be a duration"),
    ],
)
def test_what_is_refused(file: Path, text: str, told: str) -> None:
    [found] = problems(file, text)
    assert told in found


def test_a_file_that_is_too_large_no_text_or_not_there(file: Path) -> None:
    [found] = problems(file, "#" * (MOST_BYTES + 1))
    assert "more than 1,000,000 bytes" in found
    file.write_bytes(b"version: 1\nstore: \xff\n")
    with pytest.raises(SettingsError, match="2:1: the file is no UTF-8"):
        read_settings(file)
    file.unlink()
    with pytest.raises(SettingsError, match="No such file or directory; 'journeyman init' writes one"):
        read_settings(file)


# --- secrets


def test_secrets_are_resolved_when_used_and_never_kept(file: Path) -> None:
    file.write_text(API)
    loaded = read_settings(file, environ=VARIABLES)
    assert loaded.secret(loaded.settings.store) == "postgresql://ada@db/journeyman"
    assert loaded.secret(loaded.settings.mcp["crm"].headers["Authorization"]) == "Bearer crm-secret-value"
    assert "crm-secret-value" not in repr(loaded) + loaded.settings.model_dump_json() + repr(setting_values(loaded))


def test_a_variable_that_is_not_set_is_named(file: Path) -> None:
    assert problems(file, API, {"PGUSER": ""}) == [
        "3:1: store: the environment variable PGUSER is empty; set it, or put it into a file and write file:PATH",
        "11:51: mcp.crm.headers.Authorization: the environment variable CRM_TOKEN is not set; set it, or put it into a "
        "file and write file:PATH",
    ]


def test_secrets_from_files(file: Path) -> None:
    (file.parent / "token").write_text("from-a-file\n")
    text = """\
version: 1
mcp: {a: {url: "file:token"}, b: {url: "http://x", headers: {Authorization: "Bearer ${file:token}", Plain: "$${x}"}}}
"""
    file.write_text(text)
    loaded = read_settings(file, environ={})
    assert loaded.secret(loaded.settings.mcp["a"].url or "") == "from-a-file"
    assert loaded.secret(loaded.settings.mcp["b"].headers["Authorization"]) == "Bearer from-a-file"
    assert loaded.secret(loaded.settings.mcp["b"].headers["Plain"]) == "${x}"
    (file.parent / "token").unlink()
    assert ["cannot be read: No such file" in line for line in problems(file, text)] == [True, True]


TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # looks like one


@pytest.mark.parametrize(
    "line",
    [
        "store: postgresql://ada:hunter22@db/x",
        f"model: openai:{TOKEN}",
        f"mcp: {{x: {{url: 'http://x', headers: {{Authorization: 'Bearer {TOKEN}'}}}}}}",
        "mcp: {x: {url: 'http://x', headers: {X-Api-Key: 12ab}}}",
        "mcp: {x: {url: 'http://x', oauth: {client_id: we, client_secret: hunter22, issuer: 'http://x'}}}",
        "mcp: {x: {command: [y], env: {DB_PASSWORD: hunter22}}}",
        f"mcp: {{x: {{command: [y, {TOKEN}]}}}}",
        f"categories: {{general: {{global_config: {{token: {TOKEN}}}}}}}",
        "categories: {general: {global_config: {password: hunter22}}}",
        f"tools: {{x: {{parameters: {{key: {TOKEN}}}}}}}",
    ],
)
def test_a_secret_that_is_written_out_is_refused_and_not_repeated(file: Path, line: str) -> None:
    [found] = problems(file, f"version: 1\n{line}\n")
    assert "secret" in found
    assert "hunter22" not in found
    assert TOKEN not in found


def test_a_variable_is_not_looked_up_where_no_secret_can_stand(file: Path) -> None:
    [found] = problems(file, "version: 1\nagent: ${HOME}/a.gram\n", {"HOME": "/home/ada"})
    assert "only in store, model, how MCP servers and APIs are reached, and Slack's tokens" in found


# --- where values come from


def test_options_win_over_the_environment_over_the_file_over_defaults(file: Path) -> None:
    file.write_text("version: 1\nenvironment: staging\nstore: sqlite:///file.db\nmodel: ollama:file\n")
    environ = {"JOURNEYMAN_STORE": "postgresql://ada:hunter22@db/x", "JOURNEYMAN_MODEL": "ollama:environ"}
    loaded = read_settings(file, environ=environ, options={"model": "ollama:option", "doors.http.port": 8080})
    shown = {item.key: (item.value, item.origin) for item in setting_values(loaded)}
    assert loaded.settings.store == environ["JOURNEYMAN_STORE"]
    assert shown["version"] == (1, f"{file}:1")
    assert shown["environment"] == ("staging", f"{file}:2")
    assert shown["store"] == ("postgresql://ada:***@db/x", "environment variable JOURNEYMAN_STORE")
    assert shown["model"] == ("ollama:option", "option model")
    assert shown["doors.http.port"] == (8080, "option doors.http.port")
    assert shown["doors.http.host"] == ("127.0.0.1", "default")


def test_what_is_wrong_outside_of_the_file_is_told_so(file: Path) -> None:
    found = problems(file, "version: 1\n", {"JOURNEYMAN_ENVIRONMENT": "prod"}, **{"doors.http.port": -1})
    assert found[0].startswith("environment variable JOURNEYMAN_ENVIRONMENT: environment: must be")
    assert found[1].startswith("option doors.http.port: doors.http.port: must be greater")


def test_a_tools_values_are_those_of_its_environment(file: Path) -> None:
    file.write_text(
        "version: 1\nenvironment: staging\ntools:\n  x:\n    timeout_seconds: 5\n    permissions: [a]\n"
        "    environments:\n      staging: {timeout_seconds: 9, permissions: [b]}\n"
    )
    loaded = read_settings(file, environ={})
    shown = {item.key: (item.value, item.origin) for item in setting_values(loaded)}
    assert shown["tools.x.timeout_seconds"] == (9, f"{file}:8")
    tool = loaded.settings.tool("x")
    assert tool is not None
    assert (tool.timeout_seconds, tool.permissions) == (9, ["a", "b"])  # an environment takes no permission away


def test_which_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_file(None, {}) is None
    assert find_file(None, {"JOURNEYMAN_CONFIG": "x.yaml"}) == Path("x.yaml")
    assert find_file("y.yaml", {"JOURNEYMAN_CONFIG": "x.yaml"}) == Path("y.yaml")
    (tmp_path / "journeyman.yaml").write_text("version: 1")
    assert find_file(None, {}) == Path("journeyman.yaml")


def test_rates(file: Path) -> None:
    for text, calls, seconds, per in (
        ("5/s", 5, 1, "tool"),
        ("100/10min", 100, 600, "tool"),
        ("7 / hour", 7, 3600, "tool"),
        ("3/day per principal", 3, 86_400, "principal"),
        ("{per_minute: 30}", 30, 60, "tool"),
        ("{calls: 2, seconds: 1m, per: principal}", 2, 60, "principal"),
    ):
        rate = settings(file, f"version: 1\ntools: {{x: {{rate_limit: {text}}}}}").tools["x"].rate_limit
        assert rate is not None
        assert (rate.calls, rate.seconds, rate.per, rate.capacity) == (calls, seconds, per, calls)


def test_the_schema_for_editors_takes_what_the_program_takes() -> None:
    import jsonschema_rs
    import yaml

    validator = jsonschema_rs.Draft202012Validator(json_schema())
    assert list(validator.iter_errors(yaml.safe_load(API))) == []
    assert not validator.is_valid({"version": 1, "enviroment": "production"})
    assert not validator.is_valid({"version": 1, "tools": {"x": {"timeout_seconds": 301}}})
    published = Path(__file__).parents[2] / "docs" / "journeyman.schema.json"
    assert json.loads(published.read_text()) == json_schema(), "run 'python -m scripts.write_configuration'"


def test_the_reference_of_the_documentation_is_the_schemas() -> None:
    from scripts.write_configuration import PAGE, TITLES, page

    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run 'python -m scripts.write_configuration'"
    sections = {name for name, found in json_schema()["$defs"].items() if "properties" in found}
    assert sections - {"Doors"} <= set(TITLES), "a section has no table"
