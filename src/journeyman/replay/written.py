"""A recorded run as a test of pytest: its recording without secrets, and a program that a person reads and edits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pprint import pformat
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.data import canonical_json, one_line
from journeyman.core.events import read_fact
from journeyman.replay.playing import Played, outline
from journeyman.replay.recording import Recording
from journeyman.sensitive.tokens import redacted, redacted_value

LONGEST_RESULT = 2_000
"""Characters of a result that a test spells out; larger ones stand in the recording alone."""
_WIDTH = 100


class Redaction:
    """Replaces secrets and private values, each by the same word wherever it stands, so that calls still match."""

    def __init__(self, private: Sequence[str] = ()) -> None:
        self.replaced: dict[str, str] = {}
        # The longest first: one may be a part of another.
        self._private = sorted({text for text in private if text}, key=len, reverse=True)
        for text in self._private:
            self._word(text, "private")

    def _word(self, secret: str, kind: str = "secret") -> str:
        return self.replaced.setdefault(secret, f"{kind}-{len(self.replaced) + 1}")

    def recording(self, recording: Recording) -> Recording:
        """The recording as it may be shown. Secrets are found by their form and by the names they stand under."""
        facts = []
        for fact in recording.facts:
            value = from_json(fact.model_dump_json())
            agent = value.pop("agent", None)
            value = redacted_value(self._texts(value), mask=self._word)
            if agent is not None:
                # A parameter 'password::String' of a signature is no secret; what a schema says stands there, too.
                signatures = [item.pop("signature", None) for item in agent.get("tools", ())]
                agent = self._texts(agent)
                for item, signature in zip(agent.get("tools", ()), signatures, strict=True):
                    if signature is not None and not any(text in signature for text in self.replaced):
                        item["signature"] = signature
                value["agent"] = agent
            facts.append(read_fact(to_json(value)))
        return Recording(recording.run_id, tuple(facts))

    def _texts(self, value: Any) -> Any:
        """A value with what is private or a secret by its form replaced in every text, line by line however long."""
        if isinstance(value, str):
            for text in self._private:
                value = value.replace(text, self.replaced[text])
            return "".join(redacted(line, self._word) for line in value.splitlines(keepends=True))
        if isinstance(value, list):
            return [self._texts(item) for item in value]
        if isinstance(value, dict):
            return {self._texts(key): self._texts(item) for key, item in value.items()}
        return value


def written_test(played: Played, file: str, *, options: Sequence[str] = (), strictness: str = "exact") -> str:
    """A program that plays the recording in ``file`` and expects what came of it."""
    recording = played.recording
    task = one_line(recording.started.task.description, most=80)
    name = "_".join(["test", *(re.findall(r"[a-z0-9]+", task.lower())[:8] or ["recorded_run"])])
    # What today's rules decide otherwise than then is expected below.
    given = "".join(f", {option}" for option in (*options, *(["diverges=True"] if played.problems else [])))
    lines = [
        f'"""Made by \'journeyman runs test {recording.run_id}\'. Runs offline: results come from the recording."""',
        "",
        "",
        f"def {name}(recorded_run):",
        f"    # {task}",
        f"    run = recorded_run({file!r}{given})",
        "    run.check(",
        "        calls=[",
        *(f"            {line}" for item in played.made for line in _expected(outline(item))),
        "        ],",
        f"        answer={played.again.answer!r},",
        f"        status={played.again.status.value!r},",
        f"        strictness={strictness!r},",
        "    )",
    ]
    return "\n".join(lines) + "\n"


def _expected(call: dict[str, Any]) -> list[str]:
    usual = {"status": "success", "asked": False}
    shown = {key: value for key, value in call.items() if key not in usual or usual[key] != value}
    if "result" in shown and len(canonical_json(shown["result"])) > LONGEST_RESULT:
        del shown["result"]
    *lines, last = pformat(shown, sort_dicts=False, width=_WIDTH).split("\n")
    return [*lines, f"{last},"]
