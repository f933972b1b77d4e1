"""``python -m benchmarks.mcp clients``: other people's clients list and call tools through the gateway.

Each reads a file by the server for files, and asks to move it, which must wait for a person: over stdio and over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from benchmarks.mcp import registry

WAITS = "waits for a person's approval"
KEPT = ("PYTHONPATH", "XDG_STATE_HOME")
"""Variables that the inspector is told to hand on."""
READ, MOVE = "files_read_text_file", "files_move_file"


@dataclass(frozen=True, slots=True)
class Place:
    """A gateway to be called: one that listens at ``url``, else one that the client starts in ``folder``."""

    folder: Path
    url: str | None
    token: str

    @property
    def file(self) -> str:
        return str(self.folder / "data" / "note.txt")

    @property
    def move(self) -> dict[str, str]:
        return {"source": self.file, "destination": f"{self.file}.moved"}

    @property
    def environment(self) -> dict[str, str]:
        return {**registry.environment(), "TOKEN": self.token}


@dataclass(frozen=True, slots=True)
class Told:
    """What a client has seen."""

    version: str | None
    """Of the protocol, where the client tells."""
    tools: int
    read: str | None
    waits: bool

    @property
    def right(self) -> bool:
        return self.tools > 10 and self.read == "a note" and self.waits


async def all_clients() -> dict[str, Told]:
    """Every client over both transports, one after the other."""
    found: dict[str, Told] = {}
    for transport in ("stdio", "http"):
        with TemporaryDirectory() as name:
            async with _gateway(Path(name), over_http=transport == "http") as place:
                for client, calls in CLIENTS.items():
                    found[f"{client}, {transport}"] = await calls(place)
    return found


@asynccontextmanager
async def _gateway(folder: Path, *, over_http: bool) -> AsyncIterator[Place]:
    data = folder / "data"
    data.mkdir()
    (data / "note.txt").write_text("a note")
    (folder / "journeyman.yaml").write_text(registry.configuration(data))
    token = secrets.token_urlsafe(24)
    if not over_http:
        yield Place(folder, None, token)
        return
    command = registry.gateway_command("--http", "--port", "0")
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**registry.environment(), "JOURNEYMAN_TOKEN": token},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        said = (await process.stderr.readline()).decode()
        if (found := re.search(r"http://\S+/mcp", said)) is None:
            raise RuntimeError(f"the gateway did not start: {said}")
        yield Place(folder, found[0], token)
    finally:
        process.terminate()
        await process.wait()


async def _python(place: Place, *, mode: str) -> Told:
    if place.url is None:
        program, *words = registry.gateway_command()
        where: Any = StdioServerParameters(command=program, args=words, cwd=place.folder, env=place.environment)
        return await _by_sdk(where, place, mode=mode)
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {place.token}"}, timeout=60) as http:
        return await _by_sdk(streamable_http_client(place.url, http_client=http), place, mode=mode)


async def _by_sdk(where: Any, place: Place, *, mode: str) -> Told:
    async with Client(where, mode=mode) as client:
        tools = (await client.list_tools()).tools
        read = await client.call_tool(READ, {"path": place.file})
        move = await client.call_tool(MOVE, place.move)
        version = client.session.protocol_version
    [block] = move.content
    content = read.structured_content or {}
    waits = isinstance(block, types.TextContent) and WAITS in block.text
    return Told(version, len(tools), content.get("content"), waits)


async def _typescript(place: Place, *, package: str) -> Told:
    modules = registry.npm_packages("clients")
    script = registry.NODE / "clients" / "client.mjs"
    words = [str(modules), package, place.url or "", place.file, *registry.gateway_command()]
    told = await _said(place, str(registry.node()), str(script), *words)
    return Told(**told)


async def _inspector(place: Place) -> Told:
    launcher = registry.npm_packages("clients") / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    program = [str(registry.node()), str(launcher), "--cli"]
    if place.url is None:
        kept = [f"{name}={value}" for name, value in place.environment.items() if name in KEPT]
        program += ["--cwd", str(place.folder), *(word for pair in kept for word in ("-e", pair))]
        target = ["--", *registry.gateway_command()]
    else:
        program += [place.url, "--transport", "http", "--header", f"Authorization: Bearer {place.token}"]
        target = []
    listed = await _said(place, *program, "--method", "tools/list", *target)
    read = await _said(place, *program, *_call(READ, {"path": place.file}), *target)
    move = await _said(place, *program, *_call(MOVE, place.move), *target, may_fail=True)
    content = read.get("structuredContent") or {}
    return Told(None, len(listed["tools"]), content.get("content"), WAITS in move["content"][0]["text"])


def _call(tool: str, arguments: dict[str, str]) -> list[str]:
    pairs = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
    return ["--method", "tools/call", "--tool-name", tool, *pairs]


async def _said(place: Place, *command: str, may_fail: bool = False) -> Any:
    """What a program prints, as JSON."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=place.folder, env=place.environment, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    said, complained = await process.communicate()
    if process.returncode and not may_fail:
        raise RuntimeError(f"{os.path.basename(command[1])} failed: {complained.decode()[-2_000:]}")
    return json.loads(said)


def _npm_version(package: str) -> str:
    """The pinned version of one of the clients."""
    listed = json.loads((registry.NODE / "clients" / "package.json").read_text())
    return str(listed["dependencies"][package])


V1, V2, INSPECTOR = (f"@modelcontextprotocol/{name}" for name in ("sdk", "client", "inspector"))
CLIENTS: dict[str, Callable[[Place], Awaitable[Told]]] = {
    f"Python SDK {metadata.version('mcp')}, newer protocol": lambda place: _python(place, mode="auto"),
    f"Python SDK {metadata.version('mcp')}, older protocol": lambda place: _python(place, mode="legacy"),
    f"TypeScript SDK {_npm_version(V2)}": lambda place: _typescript(place, package=V2),
    f"TypeScript SDK {_npm_version(V1)}": lambda place: _typescript(place, package=V1),
    f"Inspector {_npm_version(INSPECTOR)}, command line": _inspector,
}


def table(found: dict[str, Told]) -> str:
    """As the documentation shows it."""
    lines = ["| client | protocol | tools | a read | a move |", "|---|---|---|---|---|"]
    for name, told in found.items():
        read = "its text" if told.read == "a note" else "failed"
        move = "waits for approval" if told.waits else "not governed"
        lines.append(f"| {name} | {told.version or 'not told'} | {told.tools} | {read} | {move} |")
    return "\n".join(lines)
