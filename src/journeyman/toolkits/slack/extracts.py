"""What can be said about a conversation without a model: its own sentences, chosen and sorted by their words.

Nothing is written here that nobody has said, and whoever asks is told that no model was at work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from journeyman.core.words import Patterns, WordLists

SENTENCES = {"brief": 2, "bullet_points": 5, "detailed": 10}
MOST_FOUND = 10
LONGEST_SENTENCE = 300


_listed = WordLists("journeyman.toolkits.slack", "extracts.txt")
_written = Patterns("journeyman.toolkits.slack", "extracts_patterns.txt")


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
    good, bad = (sum(words[word] for word in known) for known in (_listed.good, _listed.bad))
    if good == bad:
        return "mixed" if good else "neutral"
    return "positive" if good > bad else "negative"


def topics(texts: Sequence[str]) -> list[str]:
    """The words that come up in the most messages."""
    counts = Counter(word for text in texts for word in set(_words(text)))
    least = 2 if len(texts) > 3 else 1
    return [word for word, count in counts.most_common(MOST_FOUND) if count >= least]


def decisions(texts: Sequence[str]) -> list[str]:
    return _matching(texts, _written.decision)


def action_items(texts: Sequence[str]) -> list[str]:
    return _matching(texts, _written.action)


def _matching(texts: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    matching = (sentence for sentence in _sentences(texts) if pattern.search(sentence))
    return list(dict.fromkeys(matching))[:MOST_FOUND]


def _sentences(texts: Iterable[str]) -> list[str]:
    parts = (part.strip() for text in texts for part in _written.between_sentences.split(text))
    return list(dict.fromkeys(part[:LONGEST_SENTENCE] for part in parts if _written.word.search(part)))


def _words(text: str) -> list[str]:
    return [word for word in (each.lower() for each in _written.word.findall(text)) if word not in _listed.common]
