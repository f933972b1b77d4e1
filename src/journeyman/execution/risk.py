"""The risk of one call: by the operator's policy, the tool's declaration, known names, or the default.

Arguments that name credentials raise it, and nothing lowers it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from journeyman.core.policy import Policy
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.tools.tool import KNOWN_READS

KNOWN_RISKS: Mapping[str, RiskLevel] = {
    **dict.fromkeys(KNOWN_READS, RiskLevel.REVERSIBLE),
    **dict.fromkeys(("send_email", "create_calendar_event", "schedule_task"), RiskLevel.REVERSIBLE_WITH_DELAY),
    **dict.fromkeys(("delete_file", "make_purchase", "send_money", "modify_production"), RiskLevel.IRREVERSIBLE),
}

# Alternatives that begin with a letter fail fast; what stands before the letter is a lookbehind.
_SENSITIVE_PATH = re.compile(
    r"""etc(?<![\w.-]etc)/(?:shadow|gshadow|sudoers)\b
      | proc(?<![\w.-]proc)/[^/\s]+(?:/task/[^/\s]+)?/environ\b
      | (?:^|[\s/\\'"=:])\.env(?:\.[\w-]+)?(?=$|[\s'"/;,])
      | (?:^|[/\\\s'"=~])\.(?:ssh|gnupg|aws|kube)[/\\]
      | \bid_(?:rsa|dsa|ecdsa|ed25519)\b
      | \.(?:pem|p12|pfx|jks|keystore|key)(?=$|[\s'"/;,])
      | (?:^|[/\\\s'"=])\.(?:netrc|pgpass|npmrc|pypirc|git-credentials)\b
      | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MAX_DECODINGS = 5
"""How often a text is percent-decoded, since an escape can be escaped again."""
_URL = re.compile(r"[a-z][a-z0-9+.\-]*://[^\s'\"<>]+", re.IGNORECASE)
_SECRET_FIELD = re.compile(
    r"(?:^|[_\-.])(?:token|secret|password|passwd|pwd|api_?key|apikey|access_?key|auth|signature|sig|credential)s?$",
    re.IGNORECASE,
)


def categorize_action_risk(tool_name: str, parameters: Mapping[str, Any]) -> RiskLevel:
    """The risk of a call by its tool's name alone; unknown names are irreversible, arguments can raise the level."""
    return _raised_by_arguments(KNOWN_RISKS.get(tool_name, RiskLevel.IRREVERSIBLE), parameters)


def grade(specification: ToolSpecification, arguments: Mapping[str, Any], policy: Policy) -> RiskLevel:
    """The risk of this call of this tool under this policy."""
    level = policy.risks.get(specification.name) or specification.risk
    if level is None:
        known = KNOWN_RISKS.get(specification.name, policy.default_risk)
        level = RiskLevel.REVERSIBLE if specification.read_only else known
    return _raised_by_arguments(level, arguments)


def _raised_by_arguments(level: RiskLevel, arguments: Mapping[str, Any]) -> RiskLevel:
    if level is RiskLevel.IRREVERSIBLE:
        return level
    for value in arguments.values():
        if isinstance(value, str | list | dict | tuple) and any(_sensitive(text) for text in _strings(value)):
            return RiskLevel.IRREVERSIBLE
    return RiskLevel.IRREVERSIBLE if any(map(_sensitive, arguments)) else level


def _strings(value: Any) -> Iterator[str]:
    # An explicit stack: arguments can be nested deeper than Python recurses.
    stack = [value]
    while stack:
        match stack.pop():
            case str() as text:
                yield text
            case Mapping() as mapping:
                stack.extend(mapping.keys())
                stack.extend(mapping.values())
            case list() | tuple() as items:
                stack.extend(items)


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
    return any(map(_SENSITIVE_PATH.search, readings))


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
    if _SENSITIVE_PATH.search(text):
        return True
    return "://" in text and any(_carries_secret(found.group()) for found in _URL.finditer(text))


def _carries_secret(url: str) -> bool:
    from urllib.parse import parse_qsl, urlsplit

    try:
        parts = urlsplit(url)
        if parts.password:
            return True
        fields = parse_qsl(parts.query) + parse_qsl(parts.fragment)
    except ValueError:
        return False
    return any(value and _SECRET_FIELD.search(name) for name, value in fields)
