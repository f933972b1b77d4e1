"""What is to be done: the verbs of requests and of tools' names, as a few actions that can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words

ACTIONS = {
    "get": """get fetch retrieve read show display view see give tell check obtain pull open load inspect access
        what's whats what who whom whose when where how describe return provide preview""",
    "list": "list enumerate which browse",
    "search": "search find look lookup query locate seek discover hunt grep filter match",
    "create": """create add make insert new register book schedule write compose draft generate file raise
        plan arrange reserve build put record log save store remember note set_up setup start begin launch init open
        prepare upload sign_up enter import""",
    "update": """update edit change modify set rename adjust correct mark reschedule assign reassign move shift postpone
        replace revise turn switch configure label tag promote push_back bump increase decrease extend""",
    "complete": "complete finish close resolve done end check_off tick settle conclude",
    "delete": """delete remove drop erase clear cancel discard unassign purge wipe scrap rid revoke unsubscribe
        throw uninstall""",
    "send": """send post message email mail notify share reply respond dm forward publish announce ping text tell
        invite broadcast write submit tweet remind""",
    "compute": "calculate compute count convert estimate solve evaluate measure determine sum average total many much",
    "compare": "compare contrast versus vs difference differ",
    "summarize": "summarize summarise summary recap digest condense gist tldr overview brief sum_up shorten",
    "analyze": "analyze analyse analysis examine investigate assess evaluate study trend correlate detect forecast predict",
    "explain": "explain why clarify describe define meaning mean interpret",
    "translate": "translate translation",
    "run": "run execute trigger deploy restart invoke rerun call launch start play apply",
    "stop": "stop halt pause kill abort cancel end shut mute disable turn_off",
    "download": "download export save dump back_up backup",
    "merge": "merge combine join concatenate",
    "copy": "copy duplicate clone",
    "buy": "buy purchase order pay checkout",
}
"""Verbs, with the question words that stand for one; a verb can be of several actions."""
NEAR = (
    frozenset(("get", "list", "search")),
    frozenset(("update", "complete")),
    frozenset(("get", "compute")),
    frozenset(("get", "explain")),
    frozenset(("analyze", "compute")),
    frozenset(("analyze", "compare")),
    frozenset(("create", "send")),
    frozenset(("get", "download")),
    frozenset(("create", "copy")),
    frozenset(("create", "buy")),
)
"""Actions that people do not tell apart well."""
CHANGES = frozenset(("create", "update", "complete", "delete", "send", "run", "stop", "merge", "copy", "buy"))
READS = frozenset(("get", "list", "search", "compute", "compare", "summarize", "analyze", "explain"))
_POLITE = re.compile(
    r"^\W*(?:(?:please|pls|now|hi|hello|hey|ok|okay|and|then|so|also|just|kindly|quickly)\b[,\s]*"
    r"|(?:can|could|would|will)\s+(?:you|we|i)\s+(?:please\s+)?|help\s+me\s+(?:to\s+)?"
    r"|i(?:\s+would|['’]d)\s+like\s+(?:you\s+)?to\s+(?:know\s+)?|i\s+(?:want|need|have)\s+(?:you\s+)?to\s+(?:know\s+)?"
    r"|let(?:['’]s|\s+me|\s+us)\s+)+",
    re.IGNORECASE,
)


@cache
def _by_verb() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for action, verbs in ACTIONS.items():
        for verb in verbs.split():
            found.setdefault(stem(verb.replace("_", " ").split()[0] if "_" not in verb else verb), set()).add(action)
    return {verb: frozenset(actions) for verb, actions in found.items()}


def actions_of(written: Iterable[str]) -> list[frozenset[str]]:
    """The actions of the verbs among some words, in their order; two words can be one verb: "set up"."""
    known, stems = _by_verb(), [stem(word) for word in written]
    found = list[frozenset[str]]()
    for number, one in enumerate(stems):
        pair = f"{one}_{stems[number + 1]}" if number + 1 < len(stems) else ""
        if actions := known.get(pair) or known.get(one):
            found.append(actions)
    return found


def asked_actions(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a request wants done: by its first verb, and by any of its verbs."""
    found = actions_of(words(_POLITE.sub("", text))[:40])
    return (found[0], frozenset().union(*found)) if found else (frozenset(), frozenset())


def tool_actions(tool: ToolSpecification) -> frozenset[str]:
    """What a tool does: the first verb of its name, else the first of its description."""
    named = actions_of(words(tool.name))
    if not named:
        named = actions_of(words(tool.description)[:6])
    return named[0] if named else frozenset()


def near(one: frozenset[str], other: frozenset[str]) -> float:
    """How far two sets of actions agree: 1 for the same, 0.5 for what people do not tell apart, else 0."""
    if one & other:
        return 1.0
    return 0.5 if any(one & pair and other & pair for pair in NEAR) else 0.0
