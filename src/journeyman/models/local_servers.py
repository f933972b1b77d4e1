"""Model servers on this machine: which of the usual ports is one, and which model it offers. Asks nobody else."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

SERVERS: Mapping[str, int] = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234, "vLLM": 8000}
"""Where each of them listens unless told otherwise, in the order of preference."""
TIMEOUT_SECONDS = 0.3
CACHE_SECONDS = 5.0
LARGEST_ANSWER = 1_000_000

_lock = threading.Lock()
_cached: tuple[float, Mapping[str, int], LocalServer | None] | None = None


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered, and the first model it offers."""

    kind: str
    port: int
    model: str

    @property
    def name(self) -> str:
        """As ``model_from_name`` reads it."""
        return f"http://127.0.0.1:{self.port}/v1#{self.model}"


def find_server(servers: Mapping[str, int] | None = None) -> LocalServer | None:
    """The first server that is there, looked for on all ports at once; the finding holds for a few seconds."""
    global _cached
    wanted = SERVERS if servers is None else servers
    with _lock:
        now = time.monotonic()
        if _cached is None or _cached[1] != wanted or now - _cached[0] > CACHE_SECONDS:
            _cached = (time.monotonic(), dict(wanted), _look(wanted))
        return _cached[2]


def _look(servers: Mapping[str, int]) -> LocalServer | None:
    answers: SimpleQueue[tuple[str, str | None]] = SimpleQueue()
    for kind, port in servers.items():
        # Daemons: a server that lets its answer drip keeps nobody waiting, not even at the end of the program.
        threading.Thread(target=lambda k=kind, p=port: answers.put((k, _first_model(p))), daemon=True).start()
    offered: dict[str, str | None] = {}
    end = time.monotonic() + 2 * TIMEOUT_SECONDS
    while len(offered) < len(servers):
        try:
            kind, model = answers.get(timeout=max(0.0, end - time.monotonic()))
        except Empty:
            break
        offered[kind] = model
    there = ((kind, port, offered.get(kind)) for kind, port in servers.items())
    return next((LocalServer(kind, port, model) for kind, port, model in there if model is not None), None)


def _first_model(port: int) -> str | None:
    """What the server on a port lists first. Anything but a list of models means that it is no such server."""
    # No redirect is followed and no proxy is asked: http.client does neither.
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/v1/models", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        listed = json.loads(answer.read(LARGEST_ANSWER)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
    finally:
        connection.close()
    models = listed.get("data") if isinstance(listed, dict) else None
    items = [item for item in models if isinstance(item, dict)] if isinstance(models, list) else []
    # An agent of our own that is served there is no language model: it would end up asking itself.
    names = [item.get("id") for item in items if item.get("owned_by") != "journeyman"]
    # Models that only make vectors stand in the same list.
    return next((name for name in names if isinstance(name, str) and name and "embed" not in name.lower()), None)
