"""What is to be done, and of what a text speaks: verbs as a few actions, and different words for the same concept.

Without a language model, short lists of such words go further than anything else that can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from journeyman.choosing import vocabulary, wording
from journeyman.core.data import SEARCHED_CHARS
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import packaged_json, packaged_text, patterns, stem, word_lists, words

if TYPE_CHECKING:
    from journeyman.core.protocols import Vectors

_T = TypeVar("_T")

_PACKAGE = "journeyman.choosing"
CONCEPTS = "concepts.txt"
"""Lines of words and phrases for the same thing: people ask for "a day off" where a tool says "leave"."""
LONGEST_PHRASE = 5
"""In words."""
_CREATING = ("remind", "copy", "buy")
_UPDATING = ("complete", "comment", "run", "revert", "stop", "merge", "approve", "reject")
FAMILIES = {**dict.fromkeys(_CREATING, "create"), **dict.fromkeys(_UPDATING, "update")}
"""What an action counts as where nobody tells it apart."""
CHANGES = frozenset(("create", "update", "delete", "send", *FAMILIES))


_SPECIAL = frozenset(("summarize", "analyze", "explain", "compare", "compute", "translate"))
LOOKED_UP = frozenset(("get", "list", "search"))


def mood_of(text: str) -> str:
    """Whether a request is an ``order`` (or a wish), a ``question``, or only states something: ``statement``."""
    if wording.wish.match(text):
        return "order"
    bare = wording.polite.sub("", text)
    if bare != text and actions_of(words(bare)[:1]):
        return "order"
    if wording.asks.match(bare) or text.rstrip(" .!)").endswith("?"):
        return "question"
    return "order" if actions_of(words(bare)[:2]) else "statement"


def is_mere_question(text: str) -> bool:
    """Whether a text has questions alone, and none that asks for something to be done: "could you …?"."""
    return not wording.asks_for_a_deed.search(text) and all(
        wording.asks.match(sentence) and mood_of(sentence) == "question" for sentence, _ in _sentences(text)
    )


def cued_actions(text: str) -> frozenset[str]:
    """What a request wants done, by turns of phrase that hold no verb for it."""
    return frozenset(action for action, pattern in patterns(_PACKAGE, "cues.txt").items() if pattern.search(text))


def actions() -> dict[str, frozenset[str]]:
    """The verbs of each action."""
    return word_lists(_PACKAGE, "actions.txt")


@cache
def _near() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(one.split("/")) for one in vocabulary.near)


@cache
def _by_verb() -> dict[str, frozenset[str]]:
    by_verb: dict[str, set[str]] = {}
    for action, verbs in actions().items():
        for verb in verbs:
            by_verb.setdefault("_".join(map(stem, verb.split("_"))), set()).add(action)
    return {verb: frozenset(actions) for verb, actions in by_verb.items()}


def actions_of(written: Iterable[str]) -> list[frozenset[str]]:
    """The actions of the verbs among some words, in their order; up to three words can be one verb: "set up"."""
    return list(_longest(_by_verb(), [stem(word) for word in written], joined_by="_", most=3))


def _longest(table: Mapping[str, _T], stems: Sequence[str], *, joined_by: str, most: int) -> Iterator[_T]:
    """What stands in a table for the words of a text, one after another; of what overlaps, the longest counts."""
    place = 0
    while place < len(stems):
        for length in range(min(most, len(stems) - place), 0, -1):
            if known := table.get(joined_by.join(stems[place : place + length])):
                yield known
                place += length
                break
        else:
            place += 1


def asked_actions(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a request wants done: at first sight, and by any of its verbs."""
    bare = wording.polite.sub("", text)
    asked = actions_of(words(bare)[:40])
    every = frozenset[str]().union(*asked)
    special = every & _SPECIAL
    if wording.asks.match(bare):
        # A question names what it asks about with verbs of all kinds: "is it resolved?", "who opened it?".
        return special or LOOKED_UP, every | LOOKED_UP
    if not asked:
        return frozenset(), frozenset()
    # "Give me the gist", "show me why": the verb says less than what is to be given.
    return (special if special and asked[0] <= LOOKED_UP else asked[0]), every


def tool_actions(tool: ToolSpecification) -> frozenset[str]:
    """What a tool does: the first verb of its name and the first of its description."""
    named, described = actions_of(words(tool.name)), actions_of(words(tool.description)[:4])
    return (named[0] if named else frozenset()) | (described[0] if described else frozenset())


def only_reads(tool: ToolSpecification, asked: frozenset[str]) -> bool:
    """Whether a tool changes nothing where a change is asked for, at first sight."""
    return tool.read_only and bool(asked) and asked <= CHANGES and not asked & tool_actions(tool)


def near(one: frozenset[str], other: frozenset[str]) -> float:
    """How far two sets of actions agree: 1 for the same, 0.5 for what people do not tell apart, else 0."""
    if one & other:
        return 1.0
    return 0.5 if any(one & pair and other & pair for pair in _near()) else 0.0


# --- what is spoken of


@cache
def _by_phrase() -> dict[str, frozenset[int]]:
    by_phrase: dict[str, set[int]] = {}
    lines = packaged_text(_PACKAGE, CONCEPTS).splitlines()
    for number, line in enumerate(line for line in lines if line.strip() and not line.startswith("#")):
        for phrase in line.split(","):
            by_phrase.setdefault(" ".join(map(stem, words(phrase))), set()).add(number)
    return {phrase: frozenset(numbers) for phrase, numbers in by_phrase.items()}


def concepts(text: str) -> frozenset[int]:
    """The numbers of the concepts for which a text has a word or a phrase; of what overlaps, the longest counts."""
    stems = [stem(word) for word in words(text)]
    return frozenset[int]().union(*_longest(_by_phrase(), stems, joined_by=" ", most=LONGEST_PHRASE))


# --- whether something is asked for at all: thanks, greetings, moods and questions about the assistant itself are none
#
# Told from how a sentence is built: an order or a question about the world asks for something; a statement, an
# exclamation, or a question whose subject is "you" does not. Where there are vectors, they are weighed as well
# (``small_talk.json``; what these weights were fitted on is not recorded, but ``benchmarks.gaps.talk_weights`` fits
# such weights again and measures both). In doubt something is asked for.


LONGEST = 280
"""In characters: people who write more want something."""
IN_DOUBT = -0.5
"""The log odds from which on a text counts as said in passing."""
WEIGHTS = "small_talk.json"
EMBEDDER = "all-MiniLM-L6-v2-int8"
"""Whose vectors the weights are for."""

_STRIPPED = ' \t,.!?;:-–—()[]"“”*~'


def asks_for_something(text: str) -> bool:
    """Whether a text has an order, or a question about anything but the one who is asked."""
    text = " ".join(text[:SEARCHED_CHARS].split())
    if len(text) > LONGEST:
        return True
    return any(_asks(sentence, question=ends == "?") for sentence, ends in _sentences(text))


def sounds_like_talk(vector: Vectors) -> bool:
    """Whether a text of this vector, of length 1, is rather something said in passing than a request."""
    weights = _weights()
    return len(vector) == len(weights["weights"]) and float(vector @ weights["weights"]) + weights["bias"] > IN_DOUBT


@cache
def _weights() -> dict[str, Any]:
    import numpy as np

    read = packaged_json(_PACKAGE, WEIGHTS)
    return {"bias": read["bias"], "weights": np.asarray(read["weights"], dtype=np.float32)}


def _sentences(text: str) -> list[tuple[str, str]]:
    sentences, start = [], 0
    for match in wording.sentence_ends.finditer(text):
        sentences.append((text[start : match.start()], "?" if "?" in match[0] else ""))
        start = match.end()
    sentences.append((text[start:], ""))
    return [(sentence.strip(_STRIPPED), ends) for sentence, ends in sentences if any(map(str.isalpha, sentence))]


def _asks(sentence: str, *, question: bool) -> bool:
    rest = sentence
    while rest:
        first, _, after = rest.partition(" ")
        if wording.about_you.match(rest) or wording.wishes.match(rest):
            return False
        word = first.strip(_STRIPPED).lower().replace("’", "'")
        if not word or not any(map(str.isalpha, word)):
            rest = after.lstrip(_STRIPPED)  # a smiley
            continue
        if word not in vocabulary.openers:
            break
        if word in ("thanks", "thank", "sorry", "happy", "merry", "congratulations", "congrats", "welcome", "glad"):
            return wording.wanting.search(after) is not None  # for what, is told after it
        rest = after.lstrip(_STRIPPED)
    if not rest or (rest != sentence and rest.lower() in vocabulary.praised):
        return False
    if any(map(str.isdecimal, rest)):
        return True  # nobody chats in numbers
    first = rest.partition(" ")[0].strip(_STRIPPED).lower().replace("’", "'")
    if first in vocabulary.stating and not (question and first in ("what", "how")) and not _questions(rest):
        return wording.wanting.search(rest) is not None
    return True


def _questions(text: str) -> bool:
    return re.match(r"(?:what|how)(?:['’]s|\s+(?!a\b|an\b|nice|lovely))", text, re.IGNORECASE) is not None
