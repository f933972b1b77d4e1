"""Chats a second at 50 sessions beside the floor, 1,000 idle streams, and one slow client beside quick ones."""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import aiohttp

from benchmarks.programs import started
from benchmarks.service.model import AT_LENGTH

SESSIONS = 50
CHATS = 6
"""Of each session, one after another."""
REPETITIONS = 5
IDLE = 1_000


@dataclass
class Server:
    url: str
    pid: int

    @property
    def rss_kib(self) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:")))


@asynccontextmanager
async def served(module: str, *arguments: str) -> AsyncIterator[Server]:
    async with started(f"benchmarks.service.{module}", *arguments) as (port, pid):
        yield Server(f"http://127.0.0.1:{port}", pid)


async def chat(client: aiohttp.ClientSession, url: str, session_id: str, message: str) -> float:
    begun = time.perf_counter()
    body = {"message": message, "session_id": session_id}
    async with client.post(f"{url}/api/v1/chat", json=body) as response:
        text = await response.text()
    if response.status != 200 or '"answer"' not in text or "[DONE]" not in text:
        raise RuntimeError(f"{response.status}: {text[:500]}")
    return time.perf_counter() - begun


async def throughput(server: Server, *, label: str, message: str = "Please look") -> dict[str, float]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def one(number: int) -> list[float]:
            return [await chat(client, server.url, f"{label}-{number}", message) for _ in range(CHATS)]

        begun, cpu = time.perf_counter(), _cpu(server.pid)
        taken = [seconds for each in await asyncio.gather(*map(one, range(SESSIONS))) for seconds in each]
        elapsed = time.perf_counter() - begun
    return {
        "chats_per_second": len(taken) / elapsed,
        "p95_ms": quantiles(taken, n=20)[-1] * 1000,
        "cpu_ms_per_chat": (_cpu(server.pid) - cpu) / len(taken) * 1000,
    }


async def idle_streams(server: Server, count: int) -> dict[str, float]:
    """Streams of runs that wait for a person: how many are held, and what each costs."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
    ) as client:
        before = server.rss_kib
        slots = asyncio.Semaphore(50)
        streams: list[aiohttp.ClientResponse] = []

        async def hold() -> None:
            async with slots:
                response = await client.post(f"{server.url}/api/v1/chat", json={"message": "Please erase"})
                async for line in response.content:
                    if line.startswith(b"event: run_suspended"):
                        break
                streams.append(response)

        await asyncio.gather(*(hold() for _ in range(count)))
        await asyncio.sleep(2)
        after = server.rss_kib
        async with client.get(f"{server.url}/metrics") as response:
            text = await response.text()
        held = float(next(line for line in text.splitlines() if line.startswith("journeyman_event_streams")).split()[1])
        begun, cpu = time.perf_counter(), _cpu(server.pid)
        await asyncio.sleep(5)
        busy = (_cpu(server.pid) - cpu) / (time.perf_counter() - begun)
        quick = await throughput(server, label="beside-idle")
        for stream in streams:
            stream.close()
    return {
        "held": held,
        "kib_per_stream": (after - before) / count,
        "idle_cpu_share": busy,
        "p95_ms_of_others": quick["p95_ms"],
    }


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def slow_client(server: Server) -> dict[str, float]:
    """Others' p95 alone and beside clients that take no byte of their streams."""
    alone = await throughput(server, label="alone")
    address, port = server.url.removeprefix("http://").split(":")
    stuck = []
    for _ in range(10):
        _, writer = await asyncio.open_connection(address, int(port), limit=1)
        body = json.dumps({"message": "Please look"}).encode()
        head = f"POST /api/v1/chat HTTP/1.1\r\nHost: {address}:{port}\r\nContent-Type: application/json\r\n"
        writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a TCP transport has it
        stuck.append(writer)
    beside = await throughput(server, label="beside-slow")
    for writer in stuck:
        writer.close()
    return {"alone_p95_ms": alone["p95_ms"], "beside_p95_ms": beside["p95_ms"]}


async def measure(repetitions: int, idle: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with served("model") as model:
            model_url = f"{model.url}/v1"
            store = f"sqlite:///{folder}/bench.db"
            async with served("floor", model_url) as floor, served("ours", model_url, store) as ours:
                for server in (floor, ours):
                    await throughput(server, label="warm-up")
                rounds = []
                for number in range(repetitions):
                    pair = {"floor": floor, "ours": ours}
                    order = sorted(pair, reverse=bool(number % 2))
                    rounds.append({name: await throughput(pair[name], label=f"r{number}") for name in order})
                    for name in order:
                        long = await throughput(pair[name], label=f"l{number}", message=f"Please look {AT_LENGTH}")
                        rounds[-1][name]["long_cpu_ms_per_chat"] = long["cpu_ms_per_chat"]
                slow = await slow_client(ours)
                held = await idle_streams(ours, idle)
    ratios = [item["ours"]["chats_per_second"] / item["floor"]["chats_per_second"] for item in rounds]
    # Wall time is everybody's on a busy machine; CPU time is the server's own.
    brief, lengthy = (
        median(item["ours"][name] / item["floor"][name] for item in rounds)
        for name in ("cpu_ms_per_chat", "long_cpu_ms_per_chat")
    )
    verdicts = {
        "CPU of a chat of 20 words < 4 × the floor's": brief < 4,
        "CPU of a chat of 200 words ≤ 2.5 × the floor's": lengthy <= 2.5,
        f"{idle} idle streams held": held["held"] >= idle,
        "a slow client does not slow others (p95 ≤ 2 ×)": slow["beside_p95_ms"] <= 2 * slow["alone_p95_ms"],
    }
    return {
        "rounds": rounds,
        "ratio": median(ratios),
        "ratios": ratios,
        "cpu_ratio": {"20 words": brief, "200 words": lengthy},
        "slow_client": slow,
        "idle": held,
        "verdicts": verdicts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="everything as one document")
    parser.add_argument("--quick", action="store_true", help="less of it: an impression, not a verdict")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    found = asyncio.run(measure(2 if options.quick else REPETITIONS, 100 if options.quick else IDLE))
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name in ("floor", "ours"):
            rate = median(item[name]["chats_per_second"] for item in found["rounds"])
            p95 = median(item[name]["p95_ms"] for item in found["rounds"])
            cpu = median(item[name]["cpu_ms_per_chat"] for item in found["rounds"])
            long = median(item[name]["long_cpu_ms_per_chat"] for item in found["rounds"])
            spent = f"{cpu:.2f} ms CPU a chat, {long:.2f} of 200 words"
            print(f"{name:6} {rate:7.1f} chats/s   p95 {p95:6.0f} ms   {spent}")
        print(f"ratio  {found['ratio']:.2f}  ({', '.join(f'{ratio:.2f}' for ratio in found['ratios'])})")
        print("by CPU " + ", ".join(f"{ratio:.2f} × of {name}" for name, ratio in found["cpu_ratio"].items()))
        print("idle   " + ", ".join(f"{name} {value:.2f}" for name, value in found["idle"].items()))
        print("slow   " + ", ".join(f"{name} {value:.0f}" for name, value in found["slow_client"].items()))
        for target, passed in found["verdicts"].items():
            print(f"{'ok    ' if passed else 'MISSED'} {target}")
    sys.exit(0 if all(found["verdicts"].values()) else 1)


if __name__ == "__main__":
    main()
