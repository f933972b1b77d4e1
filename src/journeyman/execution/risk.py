"""The risk of one call: by the operator's policy, the tool's declaration, known names, or the default.

Arguments that name credentials raise it, and nothing lowers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from journeyman.core.policy import Policy
from journeyman.core.risk import RiskLevel
from journeyman.core.sensitive.addresses import mentions_metadata, url_is_internal
from journeyman.core.sensitive.files import names_secret_file
from journeyman.core.sensitive.tokens import holds_token, url_carries_secret
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.tools.tool import KNOWN_READS, Hazard

KNOWN_RISKS: Mapping[str, RiskLevel] = {
    **dict.fromkeys(KNOWN_READS, RiskLevel.REVERSIBLE),
    **dict.fromkeys(("send_email", "create_calendar_event", "schedule_task"), RiskLevel.REVERSIBLE_WITH_DELAY),
    **dict.fromkeys(("delete_file", "make_purchase", "send_money", "modify_production"), RiskLevel.IRREVERSIBLE),
}

# Alternatives that begin with a letter fail fast; what stands before the letter is a lookbehind. Nothing matches more
# than LONGEST_MATCH characters, and no alternative is tried again over what it has passed: time grows with the text.
_SENSITIVE_PATH = re.compile(
    r"""etc(?<![\w.-]etc)/(?:shadow|gshadow|sudoers)\b
      | proc(?<![\w.-]proc)/[^/\s]{1,255}(?:/task/[^/\s]{1,255})?/environ\b
      | (?:^|[\s/\\'"=:])\.env(?:\.[\w-]{1,255})?(?=$|[\s'"/;,])
      | (?:^|[/\\\s'"=~])\.(?:ssh|gnupg|aws|kube)[/\\]
      | \bid_(?:rsa|dsa|ecdsa|ed25519)\b
      | \.(?:pem|p12|pfx|jks|keystore|key)(?=$|[\s'"/;,])
      | (?:^|[/\\\s'"=])\.(?:netrc|pgpass|npmrc|pypirc|git-credentials)\b
      | -----BEGIN\ [A-Z ]{0,80}PRIVATE\ KEY-----
    """,
    re.VERBOSE | re.IGNORECASE,
)
SHORTEST_SECRET = 10
MOST_URLS = 300
MOST_TEXTS = 10_000
"""Arguments with more are not looked through, but shown to a person."""
_MAX_DECODINGS = 5
"""How often a text is percent-decoded, since an escape can be escaped again."""
_AFTER_SCHEME = re.compile(r"://[^\s'\"<>]+")
_HOST_ENDS = re.compile("[/?#]")
_SECRET_FIELD = re.compile(
    r"[?&#_\-.](?:token|secret|password|passwd|pwd|api_?key|access_?key|auth|signature|sig|credential)s?=[^&#]",
    re.IGNORECASE,
)
_HOLD_NOTHING = frozenset({int, float, bool, type(None)})
LONGEST_REMEMBERED, MOST_REMEMBERED = 200, 2_000
_HARMLESS: set[str] = set()
"""Short texts that were looked at and name no secret. What a text means depends on nothing else."""
LONGEST_MATCH = 600
WINDOW = 50_000
"""Characters that are searched in one go; other threads wait for that long and no longer."""


def categorize_action_risk(tool_name: str, parameters: Mapping[str, Any]) -> RiskLevel:
    """The risk of a call by its tool's name alone; unknown names are irreversible, arguments can raise the level."""
    return _raised_by_arguments(KNOWN_RISKS.get(tool_name, RiskLevel.IRREVERSIBLE), parameters)


def grade(
    specification: ToolSpecification, arguments: Mapping[str, Any], policy: Policy, hazard: Hazard | None = None
) -> RiskLevel:
    """The risk of this call of this tool under this policy; ``hazard`` is what the tool itself says of arguments."""
    if specification.name in RESERVED_NAMES:
        return base_risk(specification, policy)  # no tool of anybody's: what it is given reaches nobody but the asker
    level = _raised_by_arguments(base_risk(specification, policy), arguments)
    if hazard is not None and level is not RiskLevel.IRREVERSIBLE and _is_hazard(hazard, arguments):
        return RiskLevel.IRREVERSIBLE
    return level


def _is_hazard(hazard: Hazard, arguments: Mapping[str, Any]) -> bool:
    try:
        return bool(hazard(arguments))
    except Exception:  # the tool's own code; what it cannot judge is for a person
        return True


def base_risk(specification: ToolSpecification, policy: Policy) -> RiskLevel:
    """The risk of a tool under this policy, whatever its arguments."""
    level = policy.risks.get(specification.name) or specification.risk
    if level is None:
        known = KNOWN_RISKS.get(specification.name, policy.default_risk)
        level = RiskLevel.REVERSIBLE if specification.read_only else known
    if (least := policy.least_risks.get(specification.name)) is not None and least.rank > level.rank:
        return least
    return level


def _raised_by_arguments(level: RiskLevel, arguments: Mapping[str, Any]) -> RiskLevel:
    if level is RiskLevel.IRREVERSIBLE or not name_secrets(arguments):
        return level
    return RiskLevel.IRREVERSIBLE


def name_secrets(arguments: Mapping[str, Any]) -> bool:
    """Whether arguments name credentials, which raises the risk of any call as far as it goes."""
    if _only_numbers(arguments):
        return False
    looked_at = 0
    for text in _strings(arguments):
        looked_at += 1
        if looked_at > MOST_TEXTS:
            return True
        if text in _HARMLESS:
            continue
        if _sensitive(text):
            return True
        if len(text) <= LONGEST_REMEMBERED:
            _remember(text)
    return False


def _only_numbers(arguments: Mapping[str, Any]) -> bool:
    """Whether nothing in them could be a text, under names that were looked at before or are plain words."""
    for name, value in arguments.items():
        if type(value) not in _HOLD_NOTHING:
            return False
        if name not in _HARMLESS and (len(name) >= SHORTEST_SECRET or not name.isalnum()):
            return False
    return True


def _remember(text: str) -> None:
    """Agents ask for the same paths and names again and again; what raises no risk need not be looked at twice."""
    if len(_HARMLESS) >= MOST_REMEMBERED:
        _HARMLESS.clear()
    _HARMLESS.add(text)


def _strings(value: Any) -> Iterator[str]:
    """The texts in a value that are long enough to name a secret, or are no plain words."""
    # An explicit stack: arguments can be nested deeper than Python recurses.
    stack = [value]
    while stack:
        found = stack.pop()
        kind = type(found)
        if kind is str:
            if len(found) >= SHORTEST_SECRET or not found.isalnum():
                yield found
        elif kind in _HOLD_NOTHING:
            continue
        elif isinstance(found, dict | Mapping):
            stack.extend(found.keys())
            stack.extend(found.values())
        elif isinstance(found, list | tuple):
            stack.extend(found)
        elif isinstance(found, str):
            yield found


def _sensitive(text: str) -> bool:
    if _names_secret(text):
        return True
    # Only escapes and these path elements can disguise a path, and few texts contain any of them.
    if "%" not in text and "//" not in text and "/." not in text and "\\" not in text:
        return False
    decoded = _decoded(text)
    if decoded != text and _names_secret(decoded):
        return True
    # A path may contain blanks, and a text several paths: both readings are searched.
    words = decoded.split()
    readings = {_normalised(decoded), " ".join(map(_normalised, words))} if len(words) > 1 else {_normalised(decoded)}
    return any(_found(_SENSITIVE_PATH, reading) for reading in readings)


def _decoded(text: str) -> str:
    from urllib.parse import unquote

    for _ in range(_MAX_DECODINGS):
        if "%" not in text or (decoded := unquote(text)) == text:
            break
        text = decoded
    return text


def _normalised(path: str) -> str:
    """The path without doubled slashes, "." and "..". It need not exist."""
    steps: list[str] = []
    for step in path.replace("\\", "/").split("/"):
        if step == ".." and steps:
            steps.pop()
        elif step not in ("", ".", ".."):
            steps.append(step)
    return "/".join(steps)


def _names_secret(text: str) -> bool:
    if _found(_SENSITIVE_PATH, text) or names_secret_file(text):
        return True
    if len(text) >= SHORTEST_SECRET and (holds_token(text) or mentions_metadata(text)):
        return True
    if "://" not in text:
        return False
    addresses = list(islice(_AFTER_SCHEME.finditer(text), MOST_URLS + 1))
    return len(addresses) > MOST_URLS or any(_is_hazardous(found.group()) for found in addresses)


def _is_hazardous(address: str) -> bool:
    url = f"http{address}"  # whichever scheme it was
    return _carries_secret(address) or url_carries_secret(url) or url_is_internal(url)


def _carries_secret(address: str) -> bool:
    """Whether an address, from its ``://`` on, has a password before its host or a secret among its fields."""
    host = _HOST_ENDS.split(address[3:], maxsplit=1)[0]
    user, _, _ = host.rpartition("@")
    return bool(user.partition(":")[2]) or _found(_SECRET_FIELD, address)


def _found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether the pattern is anywhere in the text, which is searched window by window."""
    for at in range(0, len(text), WINDOW):
        # What begins in a window may end behind it; what begins behind it belongs to the next one.
        found = pattern.search(text, at, at + WINDOW + LONGEST_MATCH)
        if found is not None and found.start() < at + WINDOW:
            return True
    return False
