"""Who uses the service: a page, plain readers of streams that come and go, OpenAI's SDK, and the people who decide."""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import aiohttp
import openai

from benchmarks.crash.workload import Ledger
from benchmarks.soak.observed import Observed
from benchmarks.soak.workload import Orders

PAUSE_SECONDS = 0.3
PAGE_RUNS = 4
"""That one page has open at once."""
SESSION_TURNS = 3
APPROVED = 0.85
PATIENCE_SECONDS = 2.0
"""How long an approval is left to the page, which sees its own at once."""
NETWORK = (aiohttp.ClientError, ConnectionError, TimeoutError)


class Client:
    """One principal at the service."""

    def __init__(self, url: str, token: str, observed: Observed, chance: random.Random) -> None:
        self.url = url
        self.token = token
        self.observed = observed
        self.chance = chance
        self.leaving = asyncio.Event()
        """Set when nothing new is to be begun."""
        # A page that takes the stream of a run has a connection to itself, and nothing waits for ever.
        self._http = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {token}"}, timeout=aiohttp.ClientTimeout(total=None, sock_read=60)
        )

    async def close(self) -> None:
        await self._http.close()

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """One request, sent again until the service can be reached and its store is there."""
        while True:
            try:
                async with self._http.request(method, self.url + path, json=body, headers=headers) as response:
                    status, text = response.status, await response.text()
            except NETWORK as error:
                self.observed.counts[f"network {type(error).__name__}"] += 1
            else:
                self.observed.answered(status, f"{method} {path}: {text[:300]}")
                if status < 500:
                    return status, json.loads(text) if text else None
            await asyncio.sleep(self.chance.uniform(0.2, 1.0))

    async def pause(self) -> None:
        await asyncio.sleep(self.chance.uniform(0.2, 2.0) * PAUSE_SECONDS)

    async def decide(self, approval_id: str) -> None:
        approve = self.chance.random() < APPROVED
        path = f"/api/v1/approvals/{approval_id}/{'approve' if approve else 'deny'}"
        status, _ = await self.ask("POST", path, {} if approve else {"reason": "not today"})
        self.observed.counts["decided" if status == 200 else f"decision answered {status}"] += 1


async def events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str | None, str]]:
    """The id and the data of each event of a stream."""
    number, data = None, ""
    async for line in response.content:
        text = line.decode().rstrip("\n")
        if text.startswith("id: "):
            number = text[4:]
        elif text.startswith("data: "):
            data = text[6:]
        elif not text and data:
            yield number, data
            number, data = None, ""


class Page(Client):
    """Sends messages without waiting, and follows all its runs on one connection, which breaks now and then."""

    def __init__(self, *given: Any, orders: Orders) -> None:
        super().__init__(*given)
        self._orders = orders
        self._open: dict[str, float] = {}
        """Runs that are followed, and when they were begun."""
        self._last: str | None = None
        """The id of the last event, of the stream as it was asked for."""
        self._session, self._turns = uuid.uuid4().hex, 0
        self._deciding: set[asyncio.Task[None]] = set()

    async def work(self) -> None:
        while not self.leaving.is_set() or self._open:
            while len(self._open) < PAGE_RUNS and not self.leaving.is_set():
                await self._begin()
                await self.pause()
            await self._follow()

    async def _begin(self) -> None:
        self._turns += 1
        if self._turns > SESSION_TURNS:
            self._session, self._turns = uuid.uuid4().hex, 1
        body = {"message": self._orders.next(), "session_id": self._session, "run_id": f"run_{uuid.uuid4().hex}"}
        began = time.monotonic()
        status, answer = await self.ask("POST", "/api/v1/chat", body, Prefer="respond-async")
        self.observed.seconds["page: accepted"].append(time.monotonic() - began)
        if status == 202:
            self.observed.begun[answer["run_id"]] = "page"
            self._open[answer["run_id"]] = began

    async def _follow(self) -> None:
        """One look at all runs that are open: with drops, each time from where it was, until one of them has ended."""
        asked = list(self._open)
        query = "&".join(f"run={run_id}:{self.observed.seen.get(run_id, 0)}" for run_id in asked)
        self._last = None
        while asked and all(run_id in self._open for run_id in asked):
            try:
                async with asyncio.timeout(self.chance.uniform(1, 12)):
                    await self._read(query)
            except NETWORK as error:
                self.observed.counts[f"page: {type(error).__name__}"] += 1
            await asyncio.sleep(self.chance.uniform(0, 0.5))

    async def _read(self, query: str) -> None:
        headers = {} if self._last is None else {"Last-Event-ID": self._last}
        self.observed.counts["page: streams"] += 1
        async with self._http.get(f"{self.url}/api/v1/events?{query}", headers=headers) as response:
            if response.status == 204:
                self._open.clear()  # nothing more will come of any of them
                return
            if response.status != 200:
                self.observed.answered(response.status, f"events: {(await response.text())[:300]}")
                await asyncio.sleep(0.5)
                return
            async for number, data in events(response):
                if data == "[DONE]":
                    continue
                self._last = number or self._last
                self._take(json.loads(data))
                if len(self._open) < PAGE_RUNS and not self.leaving.is_set():
                    break  # as a page does that shows one more run: it asks anew, for all of them

    def _take(self, event: dict[str, Any]) -> None:
        run_id, kind = event["run_id"], event.get("type")
        if kind is None:
            self.observed.trouble.append(f"error event: {event}")
            self._open.pop(run_id, None)
            return
        if event["seq"] is not None:
            self.observed.heard(run_id, event["seq"])
        if kind == "approval_requested":
            task = asyncio.create_task(self.decide(event["approval"]["id"]))
            self._deciding.add(task)
            task.add_done_callback(self._deciding.discard)
        if kind in ("run_finished", "run_failed") and run_id in self._open:
            self.observed.ended.add(run_id)
            self.observed.seconds["page: ended"].append(time.monotonic() - self._open.pop(run_id))


class Reader(Client):
    """Reads the stream of one run at a time, leaves at random, and comes back most of the time."""

    def __init__(self, *given: Any, orders: Orders, slow: bool) -> None:
        super().__init__(*given)
        self._orders = orders
        self._slow = slow

    async def work(self) -> None:
        while not self.leaving.is_set():
            await self._one()
            await self.pause()

    async def _one(self) -> None:
        key, body, began = uuid.uuid4().hex, {"message": self._orders.next()}, time.monotonic()
        run_id: str | None = None
        while run_id is None:
            try:
                request = self._http.post(f"{self.url}/api/v1/chat", json=body, headers={"Idempotency-Key": key})
                async with request as response:
                    self.observed.answered(response.status, "chat")
                    if response.status == 200:
                        run_id = response.headers["X-Run-ID"]
                        self.observed.begun[run_id] = "reader"
                        if await self._read(response, run_id):
                            break
                    elif response.status < 500:
                        return
            except NETWORK as error:
                self.observed.counts[f"reader: {type(error).__name__}"] += 1
            await self.pause()
        if run_id not in self.observed.ended and self.chance.random() < 0.3:
            self.observed.counts["reader: gone for good"] += 1
            return
        while run_id not in self.observed.ended:
            await self._come_back(run_id)
            await self.pause()
        self.observed.seconds["slow reader: ended" if self._slow else "reader: ended"].append(time.monotonic() - began)

    async def _come_back(self, run_id: str) -> None:
        headers = {"Last-Event-ID": str(self.observed.seen.get(run_id, 0))}
        self.observed.counts["reader: came back"] += 1
        try:
            async with self._http.get(f"{self.url}/api/v1/runs/{run_id}/events", headers=headers) as response:
                self.observed.answered(response.status, "events of a run")
                if response.status == 204:
                    self.observed.ended.add(run_id)
                elif response.status == 200:
                    await self._read(response, run_id)
        except NETWORK as error:
            self.observed.counts[f"reader: {type(error).__name__}"] += 1

    async def _read(self, response: aiohttp.ClientResponse, run_id: str) -> bool:
        """To the end, or until it has enough; whether the end has come."""
        enough = self.chance.choice([2, 5, 9, 1_000, 1_000])
        try:
            async with asyncio.timeout(self.chance.choice([3, 20, 60])):
                async for number, data in events(response):
                    if data == "[DONE]":
                        self.observed.ended.add(run_id)
                        return True
                    if number is not None:
                        self.observed.heard(run_id, int(number))
                    enough -= 1
                    if enough <= 0:
                        break
                    if self._slow:
                        await asyncio.sleep(0.5)
        except TimeoutError:
            pass
        self.observed.counts["reader: left"] += 1
        return False


class Sdk(Client):
    """OpenAI's own client, which sends a request again by itself; a stream has a key, with which we do."""

    def __init__(self, *given: Any, orders: Orders) -> None:
        super().__init__(*given)
        self._orders = orders
        self._client = openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=self.token, max_retries=8, timeout=20)

    async def close(self) -> None:
        await self._client.close()
        await super().close()

    async def work(self) -> None:
        while not self.leaving.is_set():
            began, message, streams = time.monotonic(), self._orders.next(), self.chance.random() < 0.5
            try:
                await (self._streamed(message) if streams else self._whole(message))
            except openai.APIStatusError as error:
                self.observed.counts[f"sdk: gave up, {error.status_code}"] += 1
                if error.status_code in (400, 401, 403, 404, 422):
                    self.observed.trouble.append(f"sdk: {error}")
            except openai.APIError as error:
                self.observed.counts[f"sdk: gave up, {type(error).__name__}"] += 1
            else:
                self.observed.seconds["sdk: ended"].append(time.monotonic() - began)
            await self.pause()

    async def _whole(self, message: str) -> None:
        while True:
            answer = await self._client.chat.completions.create(
                model="clerk", messages=[{"role": "user", "content": message}]
            )
            self.observed.begun[(answer.model_extra or {})["journeyman"]["run_id"]] = "sdk"
            if answer.choices[0].finish_reason != "content_filter":
                return
            await asyncio.sleep(1)  # somebody decides

    async def _streamed(self, message: str) -> None:
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        finished: str | None = None
        while finished in (None, "content_filter"):
            stream = await self._client.chat.completions.create(
                model="clerk", messages=[{"role": "user", "content": message}], stream=True, extra_headers=headers
            )
            try:
                async for chunk in stream:
                    for choice in chunk.choices:
                        finished = choice.finish_reason or finished
                    if (info := (chunk.model_extra or {}).get("journeyman")) is not None:
                        self.observed.begun[info["run_id"]] = "sdk"
            except openai.APIStatusError:
                raise
            except openai.APIError as error:
                if error.body is not None:
                    raise  # the run has failed, and the stream says so
                self.observed.counts[f"sdk: broken off, {type(error).__name__}"] += 1
            finally:
                await stream.close()
            await asyncio.sleep(0.5)


class Person(Client):
    """Decides what nobody else does, settles unknown calls by what the ledger says, and lets stuck runs go on."""

    def __init__(self, *given: Any, ledger: Ledger) -> None:
        super().__init__(*given)
        self._ledger = ledger
        self.open_runs = 0

    async def work(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(0.7)

    async def look(self) -> None:
        _, found = await self.ask("GET", "/api/v1/approvals?limit=50")
        late = time.time() - PATIENCE_SECONDS
        for approval in found["approvals"]:
            asked = datetime.fromisoformat(approval["requested_at"]).timestamp()
            if asked < late or self.observed.begun.get(approval["run_id"]) != "page":
                await self.decide(approval["id"])
        for status in ("awaiting_resolution", "stuck"):
            _, found = await self.ask("GET", f"/api/v1/runs?status={status}&limit=50")
            for run in found["runs"]:
                await (self._settle(run["id"]) if status == "awaiting_resolution" else self._again(run["id"]))

    async def _settle(self, run_id: str) -> None:
        _, details = await self.ask("GET", f"/api/v1/runs/{run_id}")
        for record in details["unknown"]:
            there = self._ledger.holds(record["execution_id"])
            body = {"action": "done", "result": "seen in the ledger"} if there else {"action": "rerun"}
            status, _ = await self.ask("POST", f"/api/v1/runs/{run_id}/calls/{record['call_id']}/resolve", body)
            self.observed.counts[f"resolved: {body['action']}" if status == 200 else f"resolving: {status}"] += 1

    async def _again(self, run_id: str) -> None:
        status, _ = await self.ask("POST", f"/api/v1/runs/{run_id}/resume")
        self.observed.counts[f"resumed a stuck run: {status}"] += 1
