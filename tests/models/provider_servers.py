"""Servers on the loopback interface that speak the APIs of Anthropic, Google and Amazon Bedrock."""

from __future__ import annotations

import json
import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self
from urllib.parse import unquote

from journeyman.core.protocols import ModelResponse
from journeyman.testing.scripted import Said, as_response, pieces
from journeyman.testing.server import Cut, Reply

INPUT_TOKENS, OUTPUT_TOKENS = 21, 8


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer until it is over."""

    over: threading.Event = field(default_factory=threading.Event)


class ProviderServer:
    """Plays its turns in the order in which requests arrive: what a model says, or a fault.

    On the standard library's server: the one of aiohttp refuses the two User-Agent headers of Google's SDK.
    """

    prefix: ClassVar[str]
    environment: ClassVar[dict[str, str]]
    """What a program must set to reach this server with a key; ``URL`` stands for the address."""
    content_type = "text/event-stream"

    def __init__(self, *turns: Said | Reply | Cut | Silence) -> None:
        self.turns = turns
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def __enter__(self) -> Self:
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                played._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        path = unquote(handler.path)
        self.paths.append(path)
        self.bodies.append(body)
        self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        turn = self.turns[len(self.bodies) - 1]
        if isinstance(turn, Silence):
            turn.over.wait()
            return
        cut = isinstance(turn, Cut)
        if isinstance(turn, Cut):
            turn = turn.said
        if isinstance(turn, Reply):
            status, headers, chunks = turn.status, dict(turn.headers), list(turn.pieces)
        elif self.streams(path, body):
            status, headers, chunks = 200, {"Content-Type": self.content_type}, list(self.stream(as_response(turn)))
        else:
            whole = json.dumps(self.whole(as_response(turn))).encode()
            status, headers, chunks = 200, {"Content-Type": "application/json"}, [whole]
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(sum(map(len, chunks))))
        handler.end_headers()
        for chunk in chunks[: len(chunks) // 2] if cut else chunks:
            handler.wfile.write(chunk)
        handler.close_connection = cut

    def streams(self, path: str, body: Any) -> bool:
        raise NotImplementedError

    def whole(self, answer: ModelResponse) -> dict[str, Any]:
        raise NotImplementedError

    def stream(self, answer: ModelResponse) -> Iterator[bytes]:
        raise NotImplementedError

    # What the last request said, whatever the API.

    def system(self) -> str:
        raise NotImplementedError

    def tools(self) -> dict[str, Any]:
        """The parameters of each tool, by name."""
        raise NotImplementedError

    def results(self) -> list[tuple[str, str]]:
        """The tools' results in the last message: which call or tool, and what it returned."""
        raise NotImplementedError

    def roles(self) -> list[str]:
        return [message["role"] for message in self.bodies[-1]["messages"]]

    @classmethod
    def error(cls, status: int, message: str = "scripted fault", **headers: str) -> Reply:
        """An error as this API writes it."""
        body = json.dumps(cls.error_body(status, message)).encode()
        return Reply((body,), status, (("Content-Type", "application/json"), *headers.items()))

    @staticmethod
    def error_body(status: int, message: str) -> Any:
        raise NotImplementedError


def sse(data: Any, event: str = "") -> bytes:
    return (f"event: {event}\n" if event else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


class AnthropicServer(ProviderServer):
    """The Messages API."""

    prefix = "anthropic:claude-haiku-5-5"
    environment: ClassVar = {"ANTHROPIC_API_KEY": "sk-ant-secret", "ANTHROPIC_BASE_URL": "URL"}

    def streams(self, path: str, body: Any) -> bool:
        return bool(body.get("stream"))

    def whole(self, answer: ModelResponse) -> dict[str, Any]:
        text = [{"type": "text", "text": answer.text}] if answer.text else []
        calls = [
            {"type": "tool_use", "id": call.id or f"toolu_{number}", "name": call.tool_name, "input": call.arguments}
            for number, call in enumerate(answer.calls)
        ]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-5-5",
            "content": [*text, *calls],
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
        }

    def stream(self, answer: ModelResponse) -> Iterator[bytes]:
        whole = self.whole(answer)
        yield sse({"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}, "message_start")
        for index, block in enumerate(whole["content"]):
            text = block["type"] == "text"
            start = {**block, "text": ""} if text else {**block, "input": {}}
            yield sse({"type": "content_block_start", "index": index, "content_block": start}, "content_block_start")
            for piece in pieces(block["text"] if text else json.dumps(block["input"])):
                delta = {"type": "text_delta", "text": piece} if text else _json_delta(piece)
                yield sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
            yield sse({"type": "content_block_stop", "index": index}, "content_block_stop")
        ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield sse({"type": "message_delta", "delta": ending, "usage": whole["usage"]}, "message_delta")
        yield sse({"type": "message_stop"}, "message_stop")

    @staticmethod
    def error_body(status: int, message: str) -> Any:
        return {"type": "error", "error": {"type": "scripted_error", "message": message}}

    def system(self) -> str:
        system = self.bodies[-1]["system"]
        return system if isinstance(system, str) else "".join(block["text"] for block in system)

    def tools(self) -> dict[str, Any]:
        return {tool["name"]: tool["input_schema"] for tool in self.bodies[-1]["tools"]}

    def results(self) -> list[tuple[str, str]]:
        blocks = [block for block in self.bodies[-1]["messages"][-1]["content"] if block["type"] == "tool_result"]
        return [(block["tool_use_id"], _text(block["content"])) for block in blocks]


def _json_delta(piece: str) -> dict[str, str]:
    return {"type": "input_json_delta", "partial_json": piece}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


class GoogleServer(ProviderServer):
    """Gemini's generateContent and streamGenerateContent."""

    prefix = "google:gemini-2.5-flash"
    environment: ClassVar = {"GOOGLE_API_KEY": "AIza-secret", "GOOGLE_GEMINI_BASE_URL": "URL"}

    def streams(self, path: str, body: Any) -> bool:
        return "streamGenerateContent" in path

    def whole(self, answer: ModelResponse) -> dict[str, Any]:
        text: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
        calls: list[dict[str, Any]] = [
            {
                "functionCall": {"id": call.id or None, "name": call.tool_name, "args": call.arguments},
                "thoughtSignature": "c2lnbmF0dXJl",
            }
            for call in answer.calls
        ]
        return self._chunk([*text, *calls], finishReason="STOP")

    def _chunk(self, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **more}],
            "usageMetadata": {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS},
            "modelVersion": "gemini-2.5-flash",
            "responseId": "r1",
        }

    def stream(self, answer: ModelResponse) -> Iterator[bytes]:
        for piece in pieces(answer.text):
            yield sse(self._chunk([{"text": piece}]))
        yield sse(self.whole(answer.model_copy(update={"text": ""})))

    @staticmethod
    def error_body(status: int, message: str) -> Any:
        return {"error": {"code": status, "message": message, "status": "SCRIPTED"}}

    def system(self) -> str:
        return "".join(part["text"] for part in self.bodies[-1]["systemInstruction"]["parts"])

    def tools(self) -> dict[str, Any]:
        declared = [each for tool in self.bodies[-1]["tools"] for each in tool["functionDeclarations"]]
        return {each["name"]: each["parameters_json_schema"] for each in declared}

    def results(self) -> list[tuple[str, str]]:
        parts = self.bodies[-1]["contents"][-1]["parts"]
        found = [part["functionResponse"] for part in parts if "functionResponse" in part]
        return [(each.get("id") or each["name"], _only(each["response"])) for each in found]

    def roles(self) -> list[str]:
        return [{"model": "assistant"}.get(each["role"], each["role"]) for each in self.bodies[-1]["contents"]]


def _only(values: dict[str, str]) -> str:
    [value] = values.values()
    return value


class BedrockServer(ProviderServer):
    """Converse and ConverseStream, the latter in Amazon's binary event stream."""

    prefix = "bedrock:us.amazon.nova-lite-v1:0"
    environment: ClassVar = {
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "dummy-secret",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "URL",
        "AWS_MAX_ATTEMPTS": "1",
    }
    content_type = "application/vnd.amazon.eventstream"

    def streams(self, path: str, body: Any) -> bool:
        return path.endswith("/converse-stream")

    def whole(self, answer: ModelResponse) -> dict[str, Any]:
        text: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
        calls: list[dict[str, Any]] = [
            {"toolUse": {"toolUseId": call.id or f"tooluse_{number}", "name": call.tool_name, "input": call.arguments}}
            for number, call in enumerate(answer.calls)
        ]
        return {
            "output": {"message": {"role": "assistant", "content": [*text, *calls]}},
            "stopReason": "tool_use" if calls else "end_turn",
            "usage": self._usage(),
            "metrics": {"latencyMs": 1},
        }

    def _usage(self) -> dict[str, int]:
        return {"inputTokens": INPUT_TOKENS, "outputTokens": OUTPUT_TOKENS, "totalTokens": INPUT_TOKENS + OUTPUT_TOKENS}

    def stream(self, answer: ModelResponse) -> Iterator[bytes]:
        whole = self.whole(answer)
        yield amazon_event("messageStart", {"role": "assistant"})
        for index, block in enumerate(whole["output"]["message"]["content"]):
            if use := block.get("toolUse"):
                start = {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}
                yield amazon_event("contentBlockStart", {"contentBlockIndex": index, "start": start})
                deltas: list[Any] = [{"toolUse": {"input": piece}} for piece in pieces(json.dumps(use["input"]))]
            else:
                deltas = [{"text": piece} for piece in pieces(block["text"])]
            for delta in deltas:
                yield amazon_event("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})
            yield amazon_event("contentBlockStop", {"contentBlockIndex": index})
        yield amazon_event("messageStop", {"stopReason": whole["stopReason"]})
        yield amazon_event("metadata", {"usage": self._usage(), "metrics": {"latencyMs": 1}})

    @staticmethod
    def error_body(status: int, message: str) -> Any:
        return {"message": message}

    def system(self) -> str:
        return "".join(block.get("text", "") for block in self.bodies[-1]["system"])

    def tools(self) -> dict[str, Any]:
        specs = [tool["toolSpec"] for tool in self.bodies[-1]["toolConfig"]["tools"]]
        return {spec["name"]: spec["inputSchema"]["json"] for spec in specs}

    def results(self) -> list[tuple[str, str]]:
        blocks = self.bodies[-1]["messages"][-1]["content"]
        found = [block["toolResult"] for block in blocks if "toolResult" in block]
        return [(each["toolUseId"], _text(each["content"])) for each in found]


def amazon_event(kind: str, payload: Any) -> bytes:
    """One message of an event stream: lengths, their checksum, headers, payload, checksum of it all."""
    fields = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in fields.items()
    )
    data = json.dumps(payload).encode()
    prelude = struct.pack("!II", len(headers) + len(data) + 16, len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + data
    return message + struct.pack("!I", zlib.crc32(message))
