"""The engine's answers, kept on disk by what it was asked: whatever does not change a prompt costs nothing to try."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from benchmarks import packages
from journeyman.core.errors import ModelError
from journeyman.models.embedded.files import HASHES
from journeyman.models.embedded.worker import Engines, Setup

HOME = packages.HOME / "embedded-answers"


class RememberedEngines(Engines):
    """Asks an engine only what none was asked before."""

    async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
        asked = json.dumps([*HASHES.values(), setup.system, setup.tools, *turns])
        path = HOME / hashlib.sha256(asked.encode()).hexdigest()
        if not path.exists():
            try:
                answer = {"value": await super().ask(setup, turns)}
            except ModelError as error:
                answer = {"error": str(error)}
            HOME.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(answer))
        answer = json.loads(path.read_text())
        if "error" in answer:
            raise ModelError("MODEL_ENGINE_FAILED", answer["error"])
        return answer["value"]
