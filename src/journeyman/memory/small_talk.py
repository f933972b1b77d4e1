"""Is something asked for at all? Thanks, greetings, moods and questions about the assistant itself are no gaps.

Told from how a sentence is built: an order or a question about the world asks for something; a statement, an
exclamation, or a question whose subject is "you" does not. Where there are vectors, they are weighed as well
(``small_talk.json``; what these weights were fitted on is not recorded, but ``benchmarks.gaps.talk_weights`` fits such
weights again and measures both). In doubt something is asked for.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.core.budgets import SEARCHED_CHARS

if TYPE_CHECKING:
    from journeyman.core.protocols import Vectors

LONGEST = 280
"""In characters: people who write more want something."""
IN_DOUBT = -0.5
"""The log odds from which on a text counts as said in passing."""
WEIGHTS = Path(__file__).with_suffix(".json")
EMBEDDER = "all-MiniLM-L6-v2-int8"
"""Whose vectors the weights are for."""

_OPENERS_WORDS = """
    hi hello hey heya hiya yo sup howdy greetings hallo hola bonjour ciao salut thanks thank thx ty cheers merci
    danke gracias bye goodbye cya farewell ok okay k kk alright right sure yes yep yeah yup no nope nah maybe
    perhaps great cool nice awesome perfect excellent wonderful amazing brilliant lovely fine good super sweet neat
    fantastic impressive interesting funny wow whoa oh ah aha ha haha hahaha hehe lol rofl hmm hm um uh oops ouch
    ugh yay hooray meh sorry apologies pardon welcome congrats congratulations bravo done understood noted exactly
    indeed agreed absolutely definitely same whatever anyway well morning evening afternoon goodnight night gm gn
    later laters cheerio happy merry bless omg glad pleased true correct dear such so too very really much guys then
    please many there everyone all folks team friend buddy mate bot again works phew
"""
_OPENERS = frozenset(_OPENERS_WORDS.split())
"""Words that, alone or after one another, ask for nothing."""
_PRAISED_WORDS = """
    job work one stuff idea answer point try question news choice
"""
_PRAISED = frozenset(_PRAISED_WORDS.split())
"""What may be left of a sentence after them."""
_STATING_WORDS = """
    i i'm im i've i'd i'll we we're we've it it's its that that's thats this these those you you're youre you've
    your he she they my our there there's everything nothing nobody somebody someone today just not what how almost
    finally
"""
_STATING = frozenset(_STATING_WORDS.split())
"""First words of statements; of "what a day" and "how nice" as well, which are told from questions below."""
_WANTING = re.compile(
    r"\b(?:want|wants|need|needs|would like|['’]d like|looking (?:for|to)|try(?:ing)? to|wish to|have to|must|hoping|"
    r"wonder|wondering|curious|interested in|plan|planning|please|tell me|give me|show me|help me|let me know|"
    r"should|require|requires|going to|like to|fancy|thinking (?:about|of)|can i|could i|may i|"
    r"gonna|provide|find|calculate|get me|can you|could you|would you|will you)\b",
    re.IGNORECASE,
)
_ABOUT_YOU = re.compile(
    r"^(?:(?:and|so|but|well|hey|hi|hello|ok|okay)[,\s]+)*"
    r"(?:how\s+(?:are|r|have|do|did|was|is)\s+(?:you|u|your|ya|things|it|life|everything)\b|how\s+\w+\s+are\s+(?:you|u)\b"
    r"|how(?:['’]?s)\s+(?:it|life|things|everything|you|your)\b"
    r"|(?:are|were|r)\s+(?:you|u|we)\b|(?:do|did|don['’]?t|have|had)\s+you\b(?!\s+(?:have\s+(?!feelings|friends|fun|time|a\b)|sell|offer|"
    r"know\s+(?:if|how|what|where|when|who|which)|think\s+you\s+could|mind|get\b|find|found|seen\s+(?:my|the)))"
    r"|(?:what|who|where|when|why|which)\s+(?:are|were|is|do|does|did|made|built|created|have|can|would)\s+(?:you|u|your)\b"
    r"|(?:what|who|where)(?:['’]?s|\s+is)\s+(?:your|up|new|going\s+on|happening)\b|who\s+(?:made|built|created|trained)\s+you\b"
    r"|(?:can|could|may)\s+(?:you|i)\s+(?:hear|talk|speak|feel|think|trust|ask\s+you|be)\b|long\s+time|guess\s+what"
    r"|what\s+a\b|how\s+(?:nice|lovely|sweet|kind|funny|cool|great|interesting|wonderful|exciting|sad|annoying)\b"
    r"|what\s+(?:can|do)\s+you\s+do|really\b|seriously\b|why\s+not\b|what\?*$|who\s+knows|is\s+(?:anyone|anybody)\b)",
    re.IGNORECASE,
)
_WISHES = re.compile(
    r"^(?:have\s+(?:a|an|fun|yourself)\b|take\s+(?:care|it\s+easy|your\s+time)|keep\s+(?:it\s+up|up|going)|see\s+(?:you|ya|u)"
    r"|talk\s+(?:to\s+you\s+)?(?:soon|later)|speak\s+soon|catch\s+you|until\s+(?:next|tomorrow|then)|never\s*mind|no\s+(?:worries|"
    r"problem|rush|hurry)|forget\s+it|wish\s+me|enjoy\b|sleep\s+(?:well|tight)|good\s*(?:bye|night|morning|day|evening|afternoon)"
    r"|sounds\s+|looks\s+(?:good|great|nice|fine)|makes\s+sense|got\s+it|that\s+(?:is|was)\b|will\s+do|fair\s+enough|my\s+"
    r"(?:bad|pleasure)|you\s+rock|well\s+done|love\s+(?:it|this|that|you)|bless\s+you|cheer\s+up|come\s+on|go\s+away|shut\s+up"
    r"|stay\s+(?:safe|well|tuned)|let['’]?s\s+(?:chat|talk|go|hope)|hang\s+(?:on|in)|hold\s+on|wait\b|be\s+right\s+back|brb"
    r"|much\s+appreciated|appreciate|pleased\s+to|nice\s+to|glad\s+to|great\s+to|good\s+to|long\s+day|one\s+moment|same\s+(?:to|here)"
    r"|best\s+wishes|kind\s+regards|as\s+you\s+(?:like|wish)|to\s+be\s+honest|who\s+cares|don['’]t\s+(?:worry|mention|be))",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"[.!?;\n…]+(?:\s+|$)|\s+[-–—]\s+")
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

    read = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return {"bias": read["bias"], "weights": np.asarray(read["weights"], dtype=np.float32)}


def _sentences(text: str) -> list[tuple[str, str]]:
    found, start = [], 0
    for match in _SENTENCES.finditer(text):
        found.append((text[start : match.start()], "?" if "?" in match[0] else ""))
        start = match.end()
    found.append((text[start:], ""))
    return [(sentence.strip(_STRIPPED), ends) for sentence, ends in found if any(map(str.isalpha, sentence))]


def _asks(sentence: str, *, question: bool) -> bool:
    rest = sentence
    while rest:
        first, _, after = rest.partition(" ")
        if _ABOUT_YOU.match(rest) or _WISHES.match(rest):
            return False
        word = first.strip(_STRIPPED).lower().replace("’", "'")
        if not word or not any(map(str.isalpha, word)):
            rest = after.lstrip(_STRIPPED)  # a smiley
            continue
        if word not in _OPENERS:
            break
        if word in ("thanks", "thank", "sorry", "happy", "merry", "congratulations", "congrats", "welcome", "glad"):
            return _WANTING.search(after) is not None  # for what, is told after it
        rest = after.lstrip(_STRIPPED)
    if not rest or (rest != sentence and rest.lower() in _PRAISED):
        return False
    if any(map(str.isdecimal, rest)):
        return True  # nobody chats in numbers
    first = rest.partition(" ")[0].strip(_STRIPPED).lower().replace("’", "'")
    if first in _STATING and not (question and first in ("what", "how")) and not _questions(rest):
        return _WANTING.search(rest) is not None
    return True


def _questions(text: str) -> bool:
    return re.match(r"(?:what|how)(?:['’]s|\s+(?!a\b|an\b|nice|lovely))", text, re.IGNORECASE) is not None
