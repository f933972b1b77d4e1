"""What can be said about a conversation without a model: its own sentences, chosen and sorted by their words.

Nothing is written here that nobody has said, and whoever asks is told that no model was at work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

SENTENCES = {"brief": 2, "bullet_points": 5, "detailed": 10}
MOST_FOUND = 10
LONGEST_SENTENCE = 300

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_][\w'-]{2,}")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP = _set("""
    the and for that this with you are was were have has had not but our your from they them their there here what
    when where which who whom will would could should can may might must shall been being its it's i'm i'll we'll
    we're let's just also too very more most some any all each than then into onto out about over under again one two
    lets how why did does done get got make made like want need yes okay thanks thank please
""")
_GOOD = _set("""
    good great thanks thank nice excellent love perfect awesome happy glad works working fixed solved done success
    agree agreed congratulations congrats cool fantastic better best helpful
""")
_BAD = _set("""
    bad broken fail failed fails failing failure error errors bug wrong problem problems issue issues angry sad hate
    terrible awful worse worst late delayed delay blocked stuck down outage crash crashed unfortunately sorry
""")
_DECISION = re.compile(
    r"\b(?:we(?:'ve| have)? (?:decided|agreed|settled|chose)|decided to|decision(?: is|:)|let's go with|"
    r"we(?:'ll| will) go with|agreed|approved|final(?:ly)? (?:choice|answer))\b",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"\b(?:i'll|i will|i can take|i'm going to|todo|to do:|action item|please \w+|can you|could you|needs? to|"
    r"will (?:do|send|write|fix|look|check|prepare|update|review|call)|assigned to|"
    r"by (?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|eod|next week))\b",
    re.IGNORECASE,
)


def summary(texts: Sequence[str], style: str) -> str:
    """The sentences that most of the conversation is about, in the order in which they were said."""
    sentences = _sentences(texts)
    weights = Counter(word for sentence in sentences for word in set(_words(sentence)))

    def weight(sentence: str) -> float:
        words = set(_words(sentence))
        # Long ones are not better for being long.
        return sum(weights[word] for word in words) / (4 + len(words))

    ranked = sorted(range(len(sentences)), key=lambda n: (-weight(sentences[n]), n))
    chosen = [sentences[n] for n in sorted(ranked[: SENTENCES[style]])]
    return "\n".join(f"- {text}" for text in chosen) if style == "bullet_points" else " ".join(chosen)


def sentiment(texts: Sequence[str]) -> str:
    words = Counter(word for text in texts for word in re.findall(r"[a-z']+", text.lower()))
    good, bad = (sum(words[word] for word in known) for known in (_GOOD, _BAD))
    if good == bad:
        return "mixed" if good else "neutral"
    return "positive" if good > bad else "negative"


def topics(texts: Sequence[str]) -> list[str]:
    """The words that come up in the most messages."""
    counts = Counter(word for text in texts for word in set(_words(text)))
    least = 2 if len(texts) > 3 else 1
    return [word for word, count in counts.most_common(MOST_FOUND) if count >= least]


def decisions(texts: Sequence[str]) -> list[str]:
    return _matching(texts, _DECISION)


def action_items(texts: Sequence[str]) -> list[str]:
    return _matching(texts, _ACTION)


def _matching(texts: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    found = (sentence for sentence in _sentences(texts) if pattern.search(sentence))
    return list(dict.fromkeys(found))[:MOST_FOUND]


def _sentences(texts: Iterable[str]) -> list[str]:
    found = (part.strip() for text in texts for part in _SENTENCE.split(text))
    return list(dict.fromkeys(part[:LONGEST_SENTENCE] for part in found if _WORD.search(part)))


def _words(text: str) -> list[str]:
    return [word for word in (found.lower() for found in _WORD.findall(text)) if word not in _STOP]
