"""What the embedded model's confidence adds, on a sample: the engine reads every set of tools anew, seconds each."""

import hashlib
import json

from benchmarks.embedded.answers import RememberedEngines
from benchmarks.embedded.contenders import FixedClock
from benchmarks.gaps.corpus import Case
from journeyman.core.errors import ModelError
from journeyman.core.protocols import ModelRequest
from journeyman.core.runs import Message
from journeyman.models.embedded import EmbeddedModel

LONGEST_TOOLS = 5_000
"""In characters: reading more takes the engine a minute."""


def sample(cases: tuple[Case, ...], size: int) -> list[Case]:
    """Half of them gaps; the first by a hash of their ids."""
    ordered = sorted(cases, key=lambda case: hashlib.sha256(f"sample{case.id}".encode()).digest())
    short = [case for case in ordered if _length(case) <= LONGEST_TOOLS]
    return [case for gap in (True, False) for case in [one for one in short if one.gap is gap][: size // 2]]


def _length(case: Case) -> int:
    return len(json.dumps([tool.parameters for tool in case.tools]))


async def confidences(cases: list[Case]) -> dict[str, float]:
    """By case: how sure the model is of its call; 0 where it makes none. Answers are kept on disk."""
    model = EmbeddedModel(clock=FixedClock(), timeout=600)
    model._engines = RememberedEngines()
    found = {}
    for case in cases:
        try:
            asked = ModelRequest(messages=(Message.user(case.request),), tools=case.tools, step=1)
            said = await model.respond(asked)
            passing = not said.calls and said.confidence == 1.0  # it is sure that this is small talk
            found[case.id] = 0.0 if passing else said.confidence or 0.0
        except ModelError:
            found[case.id] = 0.0
    return found
