"""The adapter's streams: whole, odd, cut."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journeyman.core.runs import ToolCall
from journeyman.testing import call, cut, raw
from tests.models.asking import Heard, ask, completion, failure, stream


def fragment(arguments: str | None = None, **more: Any) -> dict[str, Any]:
    function = {key: more.pop(key) for key in ("name",) if key in more}
    if arguments is not None:
        function["arguments"] = arguments
    return {"tool_calls": [{**more, "function": function}]}


@pytest.mark.parametrize(
    "deltas",
    [
        [fragment('{"n":', index=0, id="a", name="f"), fragment("1}", index=0), fragment('{"n":2}', index=1, name="g")],
        [
            fragment('{"n":', index=0, id="a", name="f"),
            fragment("1}", index=0, id="a", name="f"),
            fragment('{"n":2}', index=0, id="b", name="g"),
        ],
        [fragment('{"n":', id="a", name="f"), fragment("1}", id="a"), fragment('{"n":2}', id="b", name="g")],
        [
            {"tool_calls": [{"index": 0, "id": "a"}]},
            fragment('{"n":1}', index=0, name="f"),
            fragment('{"n":2}', id="b", name="g"),
        ],
        [fragment('{"n":1}', name="f"), fragment('{"n":', name="g"), fragment("2}")],
        [
            fragment(index=0, id="a", name="f"),
            fragment(index=1, id="b", name="g"),
            fragment('{"n":2}', index=1),
            fragment('{"n":1}', index=0),
        ],
    ],
    ids=["index", "index repeated", "only ids", "id first", "neither", "interleaved"],
)
async def test_fragments_of_calls_are_put_together(deltas: list[dict[str, Any]]) -> None:
    response = await ask(stream(*deltas), deltas=Heard())
    assert [(made.tool_name, made.arguments) for made in response.calls] == [("f", {"n": 1}), ("g", {"n": 2})]
    assert response.text == ""  # a server that only calls has said nothing


async def test_a_legacy_function_call_is_streamed() -> None:
    parts = [{"function_call": {"name": "f", "arguments": '{"a"'}}, {"function_call": {"arguments": ": 1}"}}]
    response = await ask(stream(*parts), deltas=Heard())
    assert response.calls == (ToolCall(tool_name="f", arguments={"a": 1}),)


async def test_a_stream_of_any_shape_is_read() -> None:
    chunk = json.dumps({"choices": [{"delta": {"content": "grüß dich 🎉"}}]}, ensure_ascii=False).encode()
    wire = b": hi\r\n\r\ndata: " + chunk.replace(b"[{", b"[\r\ndata: {") + b"\r\n\r\n: ping\r\n\r\ndata: [DONE]"
    pieces = [wire[at : at + 1] for at in range(len(wire))]
    heard = Heard()
    response = await ask(raw(*pieces, content_type="text/event-stream"), deltas=heard)
    assert response.text == "grüß dich 🎉" == "".join(heard.pieces)


async def test_a_stream_that_says_why_it_ended_needs_no_done() -> None:
    end = b'data: {"choices":[{"delta":{},"finish_reason":"length"}]}\n\n'
    response = await ask(stream(fragment('{"n":', index=0, id="a", name="f"), end=end), deltas=Heard())
    assert response.calls == (ToolCall(id="a", tool_name="f", malformed='{"n":'),)


async def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    heard = Heard()
    assert (await ask(completion({"content": "whole"}), deltas=heard)).text == "whole"
    assert heard.pieces == ["whole"]


@pytest.mark.parametrize(
    "broken",
    [
        stream({"content": "It is"}, end=b""),
        stream({"content": "It is"}, fragment('{"n":', index=0, name="f"), end=b'data: {"choi'),
        cut("It is shipped, I am sure.", after_bytes=400),
    ],
    ids=["no end", "half an event", "connection lost"],
)
async def test_a_cut_stream_is_asked_for_again_from_the_start(broken: Any) -> None:
    heard = Heard()
    response = await ask(broken, "It is shipped.", deltas=heard)
    assert response.text == "It is shipped." == "".join(heard.pieces)
    assert heard.restarts == 1


async def test_nothing_is_restarted_where_nothing_was_said() -> None:
    heard = Heard()
    answer = call("look", text="long enough to be cut")
    response = await ask(cut(answer, after_bytes=300), answer, deltas=heard)
    assert response.calls[0].arguments == {"text": "long enough to be cut"}
    assert heard.restarts == 0


async def test_streams_that_stay_cut_are_an_error() -> None:
    error = await failure(*[cut()] * 3, deltas=Heard())
    assert error.info.code == "MODEL_UNAVAILABLE"
    assert "in the middle of its answer" in error.info.message


async def test_an_error_inside_a_stream_is_an_error() -> None:
    told = raw(b'data: {"error": {"message": "out of memory"}}\n\n', content_type="text/event-stream")
    error = await failure(told, deltas=Heard())
    assert error.info.code == "MODEL_BAD_ANSWER"
    assert "out of memory" in error.info.message
