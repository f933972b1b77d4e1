"""What refused calls teach, whether or not the run came to anything: which arguments must be looked up, and where.

A model that does not know an identifier makes one up, or writes a name in its place. The tool then refuses the call and
quotes the value. Where to find the right one is shown by what was accepted later in the run, by a result that has a
field of that name, or by the refusal itself. Only names of tools, parameters and fields are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.core.playbook import Lookup
from journeyman.core.words import stands_in
from journeyman.learning.abstraction import parsed, walk
from journeyman.learning.episodes import Episode, EpisodeCall

_OTHER_FAULTS = """
    TIMEOUT RATE_LIMITED CANCELLED REPEATED_CALL NOT_PERMITTED UNKNOWN_TOOL PLACEHOLDER_ARGUMENT
    APPROVAL_DENIED APPROVAL_EXPIRED APPROVAL_INVALID
"""
NOT_THE_CALLS_FAULT = frozenset(_OTHER_FAULTS.split())
"""Failures that say nothing about a call's arguments."""
_NAME = re.compile(r"[A-Za-z_]\w{0,39}")
"""Of parameters and fields; what is written otherwise may be somebody's value."""
_NAMED = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
_REFERS = re.compile(r"(?:^|_)(?:id|ids|key|uuid|ref|reference|slug|code|number)$")


def lookups_of(episode: Episode) -> list[Lookup]:
    """One for each argument that was refused in this run, with the best that the run shows about its source."""
    found: dict[tuple[str, str], Lookup] = {}
    for at, failed in enumerate(episode.calls):
        if failed.ok or failed.error_code in NOT_THE_CALLS_FAULT:
            continue
        for parameter in refused(failed.arguments, failed.error):
            if _NAME.fullmatch(parameter) is None:
                continue
            if _held(failed.arguments[parameter], episode.calls[:at]) is not None:
                continue  # it was looked up, and refused all the same
            lookup = _source(failed, parameter, at, episode)
            if lookup is not None:
                found[failed.tool_name, parameter] = lookup
    return list(found.values())


def refused(arguments: Mapping[str, Any], error: str) -> list[str]:
    """The arguments whose values an error quotes."""
    return [
        name
        for name, value in arguments.items()
        if isinstance(value, str | int) and not isinstance(value, bool) and stands_in(error, str(value))
    ]


def _source(failed: EpisodeCall, parameter: str, at: int, episode: Episode) -> Lookup | None:
    tool, calls = failed.tool_name, episode.calls
    for number, later in enumerate(calls[at + 1 :], start=at + 1):
        if later.ok and later.tool_name == tool and parameter in later.arguments:
            if (held := _held(later.arguments[parameter], calls[:number])) is not None:
                return Lookup(tool_name=tool, parameter=parameter, found_by=held[0], field=held[1])
            return None  # another value was right, which no result held
    named = [name for name in _NAMED.findall(failed.error) if name in episode.tools and name != tool]
    refers = _REFERS.search(parameter.casefold())
    if refers:
        reading = [call for call in calls if call.ok and not call.effect and parameter not in call.arguments]
        for other in reading:
            if any(path and path[-1] == parameter for path, _ in walk(parsed(other.result))):
                return Lookup(tool_name=tool, parameter=parameter, found_by=other.tool_name, field=parameter)
    if named:
        return Lookup(tool_name=tool, parameter=parameter, found_by=named[-1])
    return Lookup(tool_name=tool, parameter=parameter) if refers else None


def _held(value: Any, calls: Sequence[EpisodeCall]) -> tuple[str, str] | None:
    """The tool in whose result a value stands, and where."""
    wanted = str(value)
    for call in reversed(calls):
        if call.ok and not call.effect:
            for path, held in walk(parsed(call.result)):
                if str(held) == wanted:
                    return call.tool_name, ".".join(path) if all(map(_NAME.fullmatch, path)) else ""
    return None
