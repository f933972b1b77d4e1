"""What is to be done: the verbs of requests and of tools' names, as a few actions that can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words

ACTIONS = {
    "get": """get fetch retrieve read show display view see give tell check obtain pull open load inspect access
        what's whats what who whom whose when where how describe return provide preview is_there look_at status
        track trace monitor verify review watch consult current live remaining value state""",
    "list": """list enumerate which browse any all everything show_all overview catalogue history upcoming""",
    "search": """search find look lookup query locate seek discover hunt grep filter match dig look_up look_for find_out
        dig_out dig_up where_did where_is""",
    "create": """create add make insert new register book schedule write compose draft generate file raise declare
        plan arrange reserve build put record log save store remember note set_up start begin launch init prepare
        upload sign_up enter import report need open_a open_an spin_up put_in request apply submit enrol enroll
        establish initiate place issue lodge hire recruit jot pencil_in sign_me put_down open_up claim donate""",
    "update": """update edit change modify set rename adjust correct mark reschedule assign reassign move shift
        postpone replace revise turn switch configure label tag promote push_back bump increase decrease extend
        push amend alter tweak rebook upgrade downgrade raise lower transfer renew swap fix rearrange bring_forward
        put_off delay freeze block unblock lock unlock activate deactivate dim""",
    "complete": "complete finish close resolve done end check_off tick settle conclude",
    "delete": """delete remove drop erase clear cancel discard unassign purge wipe scrap rid revoke unsubscribe
        throw uninstall take_down get_rid call_off withdraw void unregister strike cross take_off take_out unenroll
        unenrol quit resign terminate dismiss""",
    "send": """send post message email mail notify share reply respond dm forward publish announce ping text invite
        broadcast write submit tweet tell_the let_know inform drop transmit dispatch deliver relay pass_on drop_a
        line get_the_word notice""",
    "comment": "comment leave_a note remark annotate",
    "remind": "remind reminder nudge forget",
    "compute": "calculate compute count convert estimate solve evaluate measure determine sum average total many much",
    "compare": "compare contrast versus vs difference differ",
    "summarize": """summarize summarise summary recap digest condense gist tldr overview brief sum_up shorten boil
        catch_me catch_up did_i_miss i_miss highlight takeaway main_point key_point short_version nutshell skim
        rundown bullet_point in_short""",
    "analyze": """analyze analyse analysis examine investigate assess evaluate study trend correlate detect
        forecast predict pattern gone_up going_up going_down getting_worse getting_busier busier driving breakdown
        insight statistics break_down doubled grow grew rise rose rising fell falling dropped happening_with
        distribution spread outlier cause rank analytics trending""",
    "explain": """explain why clarify describe define definition meaning mean interpret understand stand_for
        how_come what_happened makes_no_sense walk_me went_wrong how_do how_does how_to how_can tell_me_why
        what_does cover covered plain_language""",
    "translate": "translate translation",
    "run": """run execute trigger deploy restart invoke rerun call launch start play apply ship roll_out put_live
        go_live switch_on turn_on activate water irrigate playback stream listen put_on watch""",
    "revert": "revert rollback undo restore roll_back go_back",
    "stop": """stop halt pause kill abort cancel end shut mute disable turn_off freeze suspend block lock
        switch_off shut_down terminate deactivate""",
    "download": "download export save dump back_up backup",
    "merge": "merge combine join concatenate",
    "copy": "copy duplicate clone",
    "buy": """buy purchase order pay checkout reorder restock refill top_up""",
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
    frozenset(("update", "stop")),
    frozenset(("create", "run")),
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


_NOT = r"(?:n['’]?t|\s+not|\s+never)"
_WHOM = r"(?:it|this|that|me|us|her|him|them|the\s+\w+|my\s+\w+|[A-Z]\w+)"
_CUES: dict[str, re.Pattern[str]] = {
    "delete": re.compile(
        rf"\bno\s+longer\b|\b(?:do|does|wo|is|are|will){_NOT}\b.{{0,30}}\b(?:any\s?more|any\s+longer)\b|\bno\s+need\b"
        rf"|\b(?:do|does){_NOT}\s+need\b|\b(?:is|are|will|wo){_NOT}\s+(?:be\s+)?(?:com(?:e|ing)|go(?:ing)?)\b"
        rf"|\b(?:take|cross|strike|leave)\s+{_WHOM}\s+(?:off|out)\b|\bfree\s+up\b|\bget\s+out\s+of\b|\bnever\s+mind\b"
        r"|\b(?:changed|change)\s+(?:my|his|her|our|their)\s+minds?\b|\b(?:back|pull|drop)(?:ing|ed)?\s+out\b",
        re.IGNORECASE,
    ),
    "update": re.compile(
        rf"\binstead\b|\brather\s+than\b|\b(?:ca|can|could){_NOT}\s+make\b|\banother\s+(?:day|time|date)\b"
        r"|\b(?:earlier|later|longer|shorter)\b(?!\s+than)|,\s+not\s+\S+$|\bshould\s+(?:be|now\s+be|say)\b"
        r"|\bhas\s+(?:a\s+new|changed|moved)\b|\bfrom\s+\S+\s+to\s+\d",
        re.IGNORECASE,
    ),
    "create": re.compile(
        rf"\bi(?:['’]d|\s+would)\s+like\s+(?:a|an|another|some|\d+|two|three|four)\b|\b(?:i|we)\s+(?:want|need)\s+(?:a|an|some|\d+)\b"
        rf"|\b(?:put|sign|write|pencil|note|get)\s+{_WHOM}\s+(?:down|up|in)\b|\b(?:set|put)\s+.{{0,30}}\baside\b"
        r"|\b(?:can|could|may)\s+(?:i|we)\s+(?:get|have|see|come|book|order)\b|\bjot\b|\bfrom\s+now\s+on\b",
        re.IGNORECASE,
    ),
    "get": re.compile(
        r"\bany\s+news\b|\byet\s*\?|\bhave\s+you\s+(?:decided|heard|seen|got)\b|\bwhat['’]?s\s+taking\b|\bhow\s+(?:far|long|many|much)\b"
        r"|\bis\s+there\b|\bare\s+there\b|\bdo\s+(?:you|we)\s+(?:still\s+)?have\b|\bwhere(?:['’]s|\s+is|\s+are)\b|\bwhen\s+(?:will|is|are|do|does)\b",
        re.IGNORECASE,
    ),
}
"""How people say what they want without its verb: "no need for it any more" wants something taken away."""
_WISH = re.compile(
    r"^\W*(?:please\s+)?(?:(?:can|could|may|might)\s+(?:i|we)\b|i(?:['’]d|\s+would)\s+like|(?:i|we)\s+(?:want|need|have\s+to)\b)",
    re.IGNORECASE,
)


def mood_of(text: str) -> str:
    """Whether a request is an ``order`` (or a wish), a ``question``, or only states something: ``statement``."""
    if _WISH.match(text):
        return "order"
    bare = POLITE.sub("", text)
    if bare != text and actions_of(words(bare)[:1]):
        return "order"
    if _ASKS.match(bare) or text.rstrip(" .!)").endswith("?"):
        return "question"
    return "order" if actions_of(words(bare)[:2]) else "statement"


def cued_actions(text: str) -> frozenset[str]:
    """What a request wants done, by turns of phrase that hold no verb for it."""
    return frozenset(action for action, pattern in _CUES.items() if pattern.search(text))


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
