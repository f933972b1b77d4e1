"""Models by name."""

from __future__ import annotations

import pytest

from journeyman.core.errors import ConfigurationError
from journeyman.models.openai import OpenAIModel
from journeyman.models.resolve import explain_choice, model_from_name, ollama_address


def resolved(name: str) -> tuple[str, str]:
    model = model_from_name(name)
    assert isinstance(model, OpenAIModel)
    return model.name, str(model.base_url)


def test_openai_by_name() -> None:
    assert resolved("openai:gpt-5-mini") == ("gpt-5-mini", "https://api.openai.com/v1")


def test_openai_at_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1/")
    assert resolved("openai:qwen") == ("qwen", "http://127.0.0.1:8000/v1")


def test_a_name_may_contain_colons() -> None:
    assert resolved("ollama:qwen3:8b") == ("qwen3:8b", "http://127.0.0.1:11434/v1")


def test_any_compatible_server() -> None:
    assert resolved("http://127.0.0.1:8000/v1#org/model") == ("org/model", "http://127.0.0.1:8000/v1")
    assert resolved("https://models.example/api/v1#m") == ("m", "https://models.example/api/v1")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        (":9000", "http://127.0.0.1:9000/v1"),
        ("box", "http://box:11434/v1"),
        ("box:9000", "http://box:9000/v1"),
        ("http://box:9000/", "http://box:9000/v1"),
        ("https://box", "https://box:443/v1"),
        ("https://box/ollama/", "https://box:443/ollama/v1"),
        ("[::1]:9000", "http://[::1]:9000/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
    ],
)
def test_ollamas_own_variable_is_read_as_ollama_reads_it(host: str, address: str) -> None:
    assert ollama_address(host) == address


def test_ollama_host_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "box:9000")
    assert resolved("ollama:qwen3") == ("qwen3", "http://box:9000/v1")


def test_auto_takes_the_key_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert resolved("auto")[0] == "gpt-5-mini"
    monkeypatch.setenv("OPENAI_MODEL", "gpt-9")
    assert resolved("auto")[0] == "gpt-9"


def test_auto_takes_a_server_without_a_key_when_its_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    with pytest.raises(ConfigurationError, match="OPENAI_MODEL"):
        model_from_name("auto")
    monkeypatch.setenv("OPENAI_MODEL", "qwen")
    assert resolved("auto") == ("qwen", "http://127.0.0.1:8000/v1")


def test_auto_with_nothing_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="set OPENAI_API_KEY"):
        model_from_name("auto")


@pytest.mark.parametrize("name", ["", "gpt-5-mini", "parrot:x", "openai:", "ollama:", "http://127.0.0.1:8000/v1"])
def test_a_name_that_cannot_be_read_lists_what_is_known(name: str) -> None:
    with pytest.raises(ConfigurationError, match="openai:NAME") as caught:
        model_from_name(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", ["http://#m", "http://host:port/v1#m"])
def test_an_address_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="address of a server"):
        model_from_name(name)


def test_the_choice_is_explained_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert explain_choice()[-1].startswith("auto: nothing found")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://ada:hunter2@models.example/v1")
    lines = explain_choice()
    assert lines == [
        "OPENAI_API_KEY: set",
        "OPENAI_BASE_URL: https://***@models.example/v1",
        "OPENAI_MODEL: not set",
        "auto: openai:gpt-5-mini",
    ]
