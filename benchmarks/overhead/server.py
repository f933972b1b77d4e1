"""A scripted OpenAI-compatible server on the loopback interface, in a process of its own.

It must never be what a contender waits for, hence the raw protocol on uvloop. It keeps no state: the prompt
carries the script ("script: 10 turns of 1 add"), and the number of tool messages tells the turn.
Non-streaming only: a contender that asks for a stream gets a 400, so that nobody is measured on another road.
Prints its port as the first line of standard output.
"""

import asyncio
import re
from typing import Any

import httptools
import orjson
import uvloop

SCRIPT = re.compile(rb"script: (\d+) turns of (\d+) (\w+)")
ENVELOPE = {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 1790000000, "model": "scripted"}
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


def arguments(tool: str, turn: int, slot: int) -> str:
    """Arguments that differ from call to call, because a guard against repeated calls is not what is measured."""
    if tool.startswith("nap"):
        return f'{{"milliseconds": 50, "slot": {slot}}}'
    return f'{{"a": {turn}, "b": {slot + 1}}}'


def answer(body: bytes) -> tuple[bytes, bytes]:
    """The status line and the body that follow from a request's body."""
    request = orjson.loads(body)
    script = SCRIPT.search(body)
    if request.get("stream") or script is None:
        problem = "streaming is not scripted" if script else 'the prompt has no "script: N turns of P TOOL"'
        return b"400 Bad Request", orjson.dumps({"error": {"message": problem, "type": "invalid_request_error"}})
    turns, width, tool = int(script[1]), int(script[2]), script[3].decode()
    turn = sum(message["role"] == "tool" for message in request["messages"]) // width
    message: dict[str, Any] = {"role": "assistant", "content": f"done {turn}"}
    if turn < turns:
        calls = [
            {
                "id": f"call_{turn}_{slot}",
                "type": "function",
                "function": {"name": tool, "arguments": arguments(tool, turn, slot)},
            }
            for slot in range(width)
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if turn < turns else "stop"}
    return b"200 OK", orjson.dumps({**ENVELOPE, "choices": [choice], "usage": USAGE})


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.close()

    def on_message_begin(self) -> None:
        self.body = []

    def on_body(self, chunk: bytes) -> None:
        self.body.append(chunk)

    def on_message_complete(self) -> None:
        status, body = answer(b"".join(self.body))
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
        self.transport.write(head + body)  # type: ignore[attr-defined]


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
