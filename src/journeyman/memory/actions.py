"""What is to be done: the verbs of requests and of tools' names, as a few actions that can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words

ACTIONS = {
    "get": """get fetch retrieve read show display view see give tell check obtain pull open load inspect access
        what's whats what who whom whose when where how describe return provide preview is_there look_at status""",
    "list": "list enumerate which browse any all everything show_all",
    "search": """search find look lookup query locate seek discover hunt grep filter match dig look_up look_for find_out
        dig_out dig_up where_did where_is""",
    "create": """create add make insert new register book schedule write compose draft generate file raise declare
        plan arrange reserve build put record log save store remember note set_up start begin launch init
        prepare upload sign_up enter import report need open_a open_an spin_up put_in request apply submit""",
    "update": """update edit change modify set rename adjust correct mark reschedule assign reassign move shift postpone
        replace revise turn switch configure label tag promote push_back bump increase decrease extend push""",
    "complete": "complete finish close resolve done end check_off tick settle conclude",
    "delete": """delete remove drop erase clear cancel discard unassign purge wipe scrap rid revoke unsubscribe
        throw uninstall take_down get_rid call_off""",
    "send": """send post message email mail notify share reply respond dm forward publish announce ping text
        invite broadcast write submit tweet tell_the let_know inform drop""",
    "comment": "comment leave_a note remark annotate",
    "remind": "remind reminder nudge forget",
    "compute": "calculate compute count convert estimate solve evaluate measure determine sum average total many much",
    "compare": "compare contrast versus vs difference differ",
    "summarize": """summarize summarise summary recap digest condense gist tldr overview brief sum_up shorten boil
        catch_me catch_up did_i_miss i_miss highlight takeaway main_point key_point short_version nutshell skim""",
    "analyze": """analyze analyse analysis examine investigate assess evaluate study trend correlate detect forecast
        predict pattern gone_up going_up going_down getting_worse getting_busier busier driving breakdown insight
        statistics break_down doubled grow grew rise rose rising fell falling dropped happening_with""",
    "explain": """explain why clarify describe define definition meaning mean interpret understand stand_for how_come
        what_happened makes_no_sense walk_me went_wrong how_do how_does how_to how_can""",
    "translate": "translate translation",
    "run": """run execute trigger deploy restart invoke rerun call launch start play apply ship roll_out put_live
        go_live""",
    "revert": "revert rollback undo restore roll_back go_back",
    "stop": "stop halt pause kill abort cancel end shut mute disable turn_off",
    "download": "download export save dump back_up backup",
    "merge": "merge combine join concatenate",
    "copy": "copy duplicate clone",
    "buy": "buy purchase order pay checkout",
    "approve": "approve accept authorise authorize sign_off green_light",
    "reject": "reject decline deny refuse",
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
    frozenset(("create", "remind")),
    frozenset(("create", "comment")),
    frozenset(("send", "comment")),
    frozenset(("explain", "summarize")),
    frozenset(("delete", "stop")),
    frozenset(("update", "revert")),
)
"""Actions that people do not tell apart well."""
_CHANGING = "create update complete delete send comment remind run revert stop merge copy buy approve reject"
FAMILIES = {
    **dict.fromkeys(("remind", "copy", "buy"), "create"),
    **dict.fromkeys(("complete", "comment", "run", "revert", "stop", "merge", "approve", "reject"), "update"),
}
"""What an action counts as where nobody tells it apart."""
CHANGES = frozenset(_CHANGING.split())
READS = frozenset(("get", "list", "search", "compute", "compare", "summarize", "analyze", "explain"))
POLITE = re.compile(
    r"^\W*(?:(?:please|pls|now|hi|hello|hey|ok|okay|and|then|so|also|just|kindly|quickly)\b[,\s]*"
    r"|(?:can|could|would|will)\s+(?:you|we|i)\s+(?:please\s+)?|help\s+me\s+(?:to\s+)?"
    r"|i(?:\s+would|['’]d)\s+like\s+(?:you\s+)?to\s+(?:know\s+)?|i\s+(?:want|need|have)\s+(?:you\s+)?to\s+(?:know\s+)?"
    r"|let(?:['’]s|\s+me|\s+us)\s+)+",
    re.IGNORECASE,
)


_ASKS = re.compile(
    r"^\W*(?:is|are|was|were|did|do|does|has|have|had|am|any|anything|anyone|anybody|what|what['’]?s|who|who['’]?s|whose|"
    r"when|where|which|how\s+(?:many|much|long|far|old|often|is|are|was))\b(?!\s+you\b)",
    re.IGNORECASE,
)
"""How a question begins that is answered with something looked up."""
_SPECIAL = frozenset(("summarize", "analyze", "explain", "compare", "compute", "translate"))
_LOOKED_UP = frozenset(("get", "list", "search"))


@cache
def _by_verb() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for action, verbs in ACTIONS.items():
        for verb in verbs.split():
            found.setdefault("_".join(map(stem, verb.split("_"))), set()).add(action)
    return {verb: frozenset(actions) for verb, actions in found.items()}


def actions_of(written: Iterable[str]) -> list[frozenset[str]]:
    """The actions of the verbs among some words, in their order; up to three words can be one verb: "set up"."""
    known, stems = _by_verb(), [stem(word) for word in written]
    found = list[frozenset[str]]()
    place = 0
    while place < len(stems):
        for length in (3, 2, 1):
            if actions := known.get("_".join(stems[place : place + length])):
                found.append(actions)
                place += length
                break
        else:
            place += 1
    return found


def asked_actions(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a request wants done: at first sight, and by any of its verbs."""
    bare = POLITE.sub("", text)
    found = actions_of(words(bare)[:40])
    every = frozenset[str]().union(*found)
    special = every & _SPECIAL
    if _ASKS.match(bare):
        # A question names what it asks about with verbs of all kinds: "is it resolved?", "who opened it?".
        return special or _LOOKED_UP, every | _LOOKED_UP
    if not found:
        return frozenset(), frozenset()
    # "Give me the gist", "show me why": the verb says less than what is to be given.
    return (special if special and found[0] <= _LOOKED_UP else found[0]), every


def tool_actions(tool: ToolSpecification) -> frozenset[str]:
    """What a tool does: the first verb of its name and the first of its description."""
    named, told = actions_of(words(tool.name)), actions_of(words(tool.description)[:4])
    return (named[0] if named else frozenset()) | (told[0] if told else frozenset())


def near(one: frozenset[str], other: frozenset[str]) -> float:
    """How far two sets of actions agree: 1 for the same, 0.5 for what people do not tell apart, else 0."""
    if one & other:
        return 1.0
    return 0.5 if any(one & pair and other & pair for pair in NEAR) else 0.0
