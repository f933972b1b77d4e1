"""Is there a tool for this? From what search finds, and from how sure the model was where it says so.

A report names what is missing in the request's own words; nothing in it is invented, and no model is asked.
"""

from __future__ import annotations

import re
import string

from journeyman.core.budgets import SEARCHED_CHARS
from journeyman.core.gaps import ToolGapReport
from journeyman.retrieval.search import Hit
from journeyman.tools.library import ToolLibrary

NEEDED = 0.305
"""The score of search that the best tool must have for a request to count as served."""
NEEDED_BY_WORDS = 0.045
"""The same where nothing but words can be compared."""
CONFIDENCE_WEIGHS = 0.2
"""What the model's confidence adds to the score (1.0: half of this) or takes away (0.0)."""

_LONGEST_PHRASE = 6
_MOST_PARTS = 50
_CLAUSES = re.compile(r"[.!?;\n]+(?:\s+|$)|,?\s+(?:and\s+)?(?:then|also)\s+|,\s+and\s+", re.IGNORECASE)
_ASKING = re.compile(
    r"^\s*(?:(?:please|now|hi|hello|hey)\b[,\s]*|(?:can|could|would|will)\s+you\s+|help\s+me\s+(?:to\s+)?|"
    r"i(?:\s+would|'d)\s+like\s+(?:you\s+)?to\s+|i\s+(?:want|need|have)\s+(?:you\s+)?to\s+|"
    r"(?:what|who|which|where|when|why|how)(?:'s|\s+(?:is|are|was|were|do|does|did|can|many|much))?\s+)+",
    re.IGNORECASE,
)
_PHRASE_ENDS = frozenset(("for", "to", "from", "with", "in", "into", "on", "at", "by", "about", "as", "until", "after"))
_PUNCTUATION = string.punctuation + "“”‘’«»…–—"
_LEFT_OUT = frozenset(("a", "an", "the", "my", "our", "your", "me", "us", "some", "this", "that", "these", "please"))


class ToolGapDetector:
    """Looks a request up among the tools of a library."""

    def __init__(self, library: ToolLibrary) -> None:
        self._library = library

    async def detect(self, task_text: str, *, confidence: float | None = None) -> ToolGapReport | None:
        """What is missing for a task, or None when the tools at hand seem to do.

        Each part of the task is looked up by itself. ``confidence`` is what the model's adapter reported for the whole.
        """
        parts = _clauses(task_text)
        missing = [phrase(part) for part in parts if not await self._served(part, confidence)]
        if not missing:
            return None
        found = await self._library.find(task_text, k=len(self._library) or 1)
        checked = [tool.name for tool, _ in found]
        checked += [name for name in self._library.names() if name not in set(checked)]
        return ToolGapReport(
            missing_tools=tuple(dict.fromkeys(missing)), attempted_task=task_text, existing_tools_checked=tuple(checked)
        )

    async def _served(self, part: str, confidence: float | None) -> bool:
        hits = [hit for tool, hit in await self._library.find(part) if tool.specification.enabled]
        sureness = CONFIDENCE_WEIGHS * (confidence - 0.5) if confidence is not None else 0.0
        return any(hit.score + sureness >= _needed(hit) for hit in hits)


def _clauses(text: str) -> list[str]:
    # Blanks one by one: a pattern that meets long runs of them takes the square of their length.
    lines = "\n".join(" ".join(line.split()) for line in text[:SEARCHED_CHARS].splitlines() if line.strip())
    parts = [part.strip() for part in _CLAUSES.split(lines) if any(map(str.isalpha, part))]
    return parts[:_MOST_PARTS]


def _needed(hit: Hit) -> float:
    return NEEDED_BY_WORDS if hit.similarity is None else NEEDED


def phrase(request: str) -> str:
    """What a request asks for, in its own words: from the verb to the end of its object.

    >>> phrase("Please retrieve my stock portfolio performance for Q3 2024")
    'retrieve stock portfolio performance'
    """
    kept: list[str] = []
    for written in _ASKING.sub("", request).split():
        word = written.strip(_PUNCTUATION)
        if not word[:1].isalpha():
            continue
        folded = word.lower()
        if folded in _PHRASE_ENDS and kept:
            break
        if folded not in _LEFT_OUT:
            kept.append(folded if not kept else word)
        if len(kept) == _LONGEST_PHRASE:
            break
    while kept and kept[-1].lower() == "of":
        kept.pop()
    return " ".join(kept) or request.strip()
