"""Models by name."""

from __future__ import annotations

import re
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import pytest

from journeyman.app.assembly import model_named
from journeyman.app.finding import how_served, tools_with_chances
from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.models import local_servers, resolve
from journeyman.models.embedded import files
from journeyman.models.openai import OpenAIModel
from journeyman.models.resolve import explain_choice, model_from_name, ollama_address
from journeyman.testing import ScriptedModel
from tests.waiting import WAIT_SECONDS

Local = Callable[..., int]
Acme = Callable[[str], None]
MODELS = b'{"object": "list", "data": [{"id": "text-embedding-small"}, {"id": "org/model"}, {"id": "second"}]}'


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    """Starts servers that answer everything alike; returns their ports."""
    monkeypatch.setattr(local_servers, "TIMEOUT_SECONDS", WAIT_SECONDS)
    running: list[ThreadingHTTPServer] = []

    def serve(
        answer: bytes, *, status: int = 200, location: str = "", seconds: float = 0.0, asked: list[str] | None = None
    ) -> int:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if asked is not None:
                    asked.append(self.path)
                time.sleep(seconds)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                if location:
                    self.send_header("Location", location)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_port

    yield serve
    for server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Acme]:
    """Installs a package with an entry point ``acme``, made of this code."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(code: str) -> None:
        information = tmp_path / "acme_for_journeyman-1.5.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-for-journeyman\nVersion: 1.5\n")
        (information / "entry_points.txt").write_text(f"[{resolve.GROUP}]\nacme = acme_models:model\n")
        (tmp_path / "acme_models.py").write_text(code)

    yield install
    sys.modules.pop("acme_models", None)


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "DISTRIBUTION", "no-such-distribution")


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to listen on this machine must not decide tests."""
    monkeypatch.setattr(local_servers, "SERVERS", {})


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
    assert explain_choice()[-1] != "auto: openai:"
    monkeypatch.setenv("OPENAI_MODEL", "qwen")
    assert resolved("auto") == ("qwen", "http://127.0.0.1:8000/v1")


def test_what_is_configured_comes_before_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("JOURNEYMAN_MODEL", "ollama:qwen3")
    assert resolved("auto") == ("qwen3", "http://127.0.0.1:11434/v1")
    monkeypatch.setenv("JOURNEYMAN_MODEL", "auto")
    assert resolved("auto")[0] == "gpt-5-mini"


def test_auto_with_nothing_says_what_to_do(no_engine: None) -> None:
    with pytest.raises(ConfigurationError, match=r"\[embedded\].* or set OPENAI_API_KEY"):
        model_from_name("auto")
    assert explain_choice()[-1] == "auto: nothing found"


def test_the_embedded_model_by_name_says_at_once_that_it_is_not_there(no_engine: None) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(install_command("embedded"))):
        model_from_name("embedded")


@pytest.mark.parametrize(
    "name", ["", "gpt-5-mini", "parrot:x", "openai:", "ollama:", "http://127.0.0.1:8000/v1", "embedded:x"]
)
def test_a_name_that_cannot_be_read_lists_what_is_known(name: str) -> None:
    with pytest.raises(ConfigurationError, match="openai:NAME") as caught:
        model_from_name(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("claude-haiku-5-5", "anthropic:claude-haiku-5-5"),
        ("gemini-3-pro", "google:gemini-3-pro"),
        ("qwen3:8b", "ollama:qwen3:8b"),
        ("opnai:gpt-5-mini", "openai:gpt-5-mini"),
        ("Anthropic:claude", "anthropic:claude"),
        ("acne:large", "acme:large"),
        ("weights.gguf", "gguf:weights.gguf"),
        ("openai", "openai:NAME"),
        ("embeded", "embedded"),
    ],
)
def test_what_was_probably_meant_is_suggested(name: str, meant: str, acme: Acme) -> None:
    acme("def model(name): ...")
    with pytest.raises(ConfigurationError) as caught:
        model_from_name(name)
    assert f"did you mean {meant!r}?" in str(caught.value)


@pytest.mark.parametrize("name", ["http://#m", "http://host:port/v1#m"])
def test_an_address_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="address of a server"):
        model_from_name(name)


def test_a_gguf_needs_a_path() -> None:
    with pytest.raises(ConfigurationError, match="'gguf:' names no file"):
        model_from_name("gguf:")


def test_the_choice_is_explained_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert explain_choice() == ["JOURNEYMAN_MODEL: not set", "OPENAI_API_KEY: set", "auto: openai:gpt-5-mini"]
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://ada:hunter2@models.example/v1")
    monkeypatch.setenv("OPENAI_MODEL", "qwen")
    assert explain_choice()[-2:] == [
        "OPENAI_BASE_URL: https://***@models.example/v1, OPENAI_MODEL: qwen",
        "auto: openai:qwen",
    ]


# --- prefixes of other packages


def test_another_package_adds_a_prefix(acme: Acme) -> None:
    acme("from journeyman.testing import ScriptedModel\ndef model(name): return ScriptedModel([], name=name)")
    model = model_from_name("acme:large#x")
    assert isinstance(model, ScriptedModel)
    assert model.name == "acme:large#x"


def test_an_unknown_prefix_lists_those_of_other_packages_too(acme: Acme) -> None:
    acme("def model(name): ...")
    with pytest.raises(ConfigurationError, match=r"and from other packages acme$"):
        model_from_name("parrot:x")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import parrots", "ModuleNotFoundError: No module named 'parrots'"),
        ("1 / 0", "ZeroDivisionError"),
        ("", "AttributeError"),
        ("model = 'text'", "it is a str, not a function"),
    ],
)
def test_an_entry_point_that_cannot_be_loaded_names_its_package(code: str, reason: str, acme: Acme) -> None:
    acme(code)
    with pytest.raises(ConfigurationError) as caught:
        model_from_name("acme:large")
    assert "acme = 'acme_models:model' of acme-for-journeyman 1.5" in str(caught.value)
    assert reason in str(caught.value)


def test_our_own_entry_points_are_those_of_the_table(acme: Acme, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][resolve.GROUP] == resolve.BUILT_IN
    # So the metadata of installed packages is not read for them.
    monkeypatch.setattr(metadata, "entry_points", None)
    assert resolved("openai:gpt-5-mini")[0] == "gpt-5-mini"


def test_a_model_that_ranks_tools_is_given_the_ranking(acme: Acme) -> None:
    acme("class Model:\n  rank = serves = None\ndef model(name): return Model()")
    made = model_named("acme:x")
    assert (getattr(made, "rank"), getattr(made, "serves")) == (tools_with_chances, how_served)  # noqa: B009
