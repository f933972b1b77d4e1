"""A server with some of everything, for the gateway to stand in front of. It notes calls in the file it is given."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    Annotations,
    CallToolResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
SIZE = {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}
server = MCPServer("whole")


def note(word: str) -> None:
    Path(sys.argv[1]).write_text(word)


class Size(BaseModel):
    size: str


@server.tool()
def mixed() -> CallToolResult:
    """Give several blocks."""
    return CallToolResult(
        content=[
            ImageContent(data=PIXEL, mime_type="image/png"),
            TextContent(text="first\nline", annotations=Annotations(audience=["user"], priority=0.5)),
            ResourceLink(uri="note://linked", name="linked", title="A link"),
            TextContent(text="second"),
        ],
        structured_content={"total": 2},
    )


@server.tool()
async def order_now(context: Context) -> str:
    """Order something; asks for its size at once, as the older protocol does."""
    answer = await context.elicit(message="Which size?", schema=Size)
    return f"ordered {answer.data.size}" if answer.action == "accept" else f"not ordered: {answer.action}"


@server.tool()
async def order_later(context: Context) -> str | InputRequiredResult:
    """Order something; asks for its size before it goes on, as the newer protocol does."""
    answer = (context.input_responses or {}).get("size")
    if answer is None:
        asked = ElicitRequest(params=ElicitRequestFormParams(message="Which size?", requested_schema=SIZE))
        return InputRequiredResult(input_requests={"size": asked}, request_state="asked")
    assert isinstance(answer, ElicitResult)
    return f"ordered {(answer.content or {}).get('size')}" if answer.action == "accept" else "not ordered"


@server.tool()
async def sample(context: Context) -> str | InputRequiredResult:
    """Want something of the client's model."""
    said = SamplingMessage(role="user", content=TextContent(text="Write."))
    params = CreateMessageRequestParams(messages=[said], max_tokens=1_000_000)
    return InputRequiredResult(input_requests={"text": CreateMessageRequest(params=params)})


@server.tool()
async def hang() -> str:
    """Never end."""
    note("begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return ""


@server.resource("note://fixed", mime_type="application/json")
def fixed() -> str:
    return '{"fixed": true}'


@server.resource("note://linked")
def linked() -> str:
    return "what the link leads to"


@server.resource("note://by/{name}")
def by(name: str) -> str:
    return f"by {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


@server.completion()  # type: ignore[no-untyped-call,untyped-decorator]
async def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["Ada", "Bob"])


if __name__ == "__main__":
    server.run("stdio")
