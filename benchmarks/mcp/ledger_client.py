"""The client of the campaign of kills: does a job for every line of its standard input, and says what came of it.

``python -m benchmarks.mcp.ledger_client URL``; the token is in the environment variable TOKEN. A job is a call, a read,
or a task, which it looks after until it has ended or a person must act. It says yes to every question.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any, Literal

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from journeyman.doors.mcp.calls import KEY, TASKS


class Task(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str


class Told(types.Result):
    status: str
    status_message: str = ""
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Params(types.RequestParams):
    task_id: str


class Get(types.Request[Params, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: Params


class Tasks(ClientExtension):
    """Looks after a task until it has ended, or until a person must act."""

    identifier = TASKS

    def __init__(self, task_id: str | None) -> None:
        self.task_id = task_id

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=self._resolve)]

    async def _resolve(self, task: Task, ctx: ClaimContext) -> types.CallToolResult:
        self.task_id = task.task_id
        return await self.result(ctx.session)

    async def result(self, session: ClientSession) -> types.CallToolResult:
        assert self.task_id is not None
        while True:
            told = await session.send_request(Get(params=Params(task_id=self.task_id)), Told)
            if told.result is not None:
                return types.CallToolResult.model_validate(told.result, by_name=False)
            if told.error is not None or told.status_message:
                text = told.status_message or str(told.error)
                return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
            await asyncio.sleep(0.1)


async def sure(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"sure": True})


async def called(url: str, job: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    meta: Any = {KEY: job["key"]} if job["key"] else None
    tasks = Tasks(job.get("task"))
    options: Any = {"extensions": [tasks]} if job["as"] == "task" else {}
    if "_ask" in job["tool"]:  # about approvals somebody else is asked
        options["elicitation_callback"] = sure
    try:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=job["mode"], **options) as client,
        ):
            if job["as"] == "read":
                read = await client.read_resource(f"ledger://{job['line']}")
                return {"error": False, "text": str(read.contents[0])}
            if tasks.task_id is not None:
                result = await tasks.result(client.session)
            else:
                result = await client.call_tool(job["tool"], {"line": job["line"]}, meta=meta)
    except (MCPError, httpx2.HTTPError, OSError, RuntimeError, BaseExceptionGroup) as error:
        return {"broken": f"{type(error).__name__}: {error}"[:300], "task": tasks.task_id}
    text = "".join(block.text for block in result.content if isinstance(block, types.TextContent))
    return {"error": result.is_error, "text": text, "task": tasks.task_id}


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(asyncio.run(called(sys.argv[1], job))), flush=True)


if __name__ == "__main__":
    main()
