"""What an ended run teaches: whether it was good, by the best label there is, and what of it is worth keeping.

Refused calls teach whether or not the run came to anything: which arguments must be looked up, and where. A model that
does not know an identifier makes one up, or writes a name in its place. The tool then refuses the call and quotes the
value. Where to find the right one is shown by what was accepted later in the run, by a result that has a field of that
name, or by the refusal itself. Only names of tools, parameters and fields are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from journeyman.core.approvals import Label, LabelSource, best_label
from journeyman.core.calls import ResultField
from journeyman.core.data import digest
from journeyman.core.playbook import Lookup, PlaybookBullet
from journeyman.core.runs import AgentResponse
from journeyman.learning import listed
from journeyman.learning.abstraction import Abstracted, abstract
from journeyman.learning.episodes import Episode, EpisodeCall, from_response, normalised
from journeyman.learning.examples import is_choice
from journeyman.provenance.hints import allowed_in, refused
from journeyman.provenance.index import refers
from journeyman.provenance.ledger import is_name, leaves, shown_path, values_at, written

_NAMED = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one episode says: about the strategies it was given, and as a strategy of its own."""

    episode: Episode
    label: Label
    """The best that there is."""
    sequence: tuple[str, ...] = ()
    abstracted: Abstracted | None = None
    """None where there is nothing to show."""
    pitfalls: list[PlaybookBullet] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.label.value == "good"


class Reflector:
    """Turns episodes into lessons. Keeps nothing."""

    def reflect(
        self, run: Episode | AgentResponse[Any], *, request: str = "", own_values: bool = False
    ) -> Lesson | None:
        """The lesson of an episode or a response; None where nobody can say how it went.

        ``request`` is what was asked, for a response whose messages do not say it; ``own_values`` lets its example
        show the run's values in the place of made-up ones.
        """
        episode = run if isinstance(run, Episode) else from_response(run, request=request)
        if episode is None:
            return None
        abstracted = abstract(episode, own=own_values)
        # The most reliable label there is: what somebody said, what their decisions say, what the calls say.
        said = [label for label in (*episode.labels, decision(episode)) if label is not None]
        label = best_label(said) or episode.verdict or judge(episode, abstracted)
        if label is None:
            return None
        sequence = normalised(call.tool_name for call in episode.used)
        pitfalls = [_bullet(episode, lookup.tool_name, _lookup_text(lookup), lookup) for lookup in lookups_of(episode)]
        if label.value == "good":
            known = {pitfall.content for pitfall in pitfalls}
            pitfalls += [pitfall for pitfall in _pitfalls(episode) if pitfall.content not in known]
        return Lesson(episode, label, sequence, abstracted, pitfalls)


def decision(episode: Episode) -> Label | None:
    """What people's answers to approvals say: refused is bad; allowed, and then done, is good."""
    asked = [call for call in episode.calls if call.decided is not None]
    if any(call.decided is False for call in asked):
        return Label(source=LabelSource.DECISION, value="bad", note="a person refused a call")
    if asked and episode.ended_by_itself and all(call.ok for call in asked):
        return Label(source=LabelSource.DECISION, value="good", note="a person allowed what was done")
    return None


def judge(episode: Episode, abstracted: Abstracted | None) -> Label | None:
    """Without anybody's word: it ended by itself, changed something, and invented no identifier.

    A run that could have changed something and did not may have been a question: nothing is said of it.
    """

    def says(good: bool, note: str) -> Label:
        return Label(source=LabelSource.JUDGE, value="good" if good else "bad", note=note)

    if not episode.ended_by_itself:
        return says(False, "it did not end by itself")
    if abstracted is None:
        return says(False, "every call failed") if episode.calls else None
    changing = {number for number, call in enumerate(abstracted.demonstration.calls) if call.effect}
    if not changing and episode.could_change:
        return None
    invented = [name for number, name in abstracted.ungrounded if number in changing or not changing]
    if invented:
        return says(False, f"from nowhere: {', '.join(invented)}")
    if not episode.calls[-1].ok:
        return says(False, "the last call failed")
    return says(True, "it ended by itself, changed something and invented nothing")


def _pitfalls(episode: Episode) -> list[PlaybookBullet]:
    """What failed and was then done right in the same run, said about the tool, without anybody's values."""
    pitfalls: list[PlaybookBullet] = []
    for at, failed in enumerate(episode.calls):
        if failed.ok or failed.error_code in listed.other_faults:
            continue
        later = episode.calls[at + 1 :]
        right = next((call for call in later if call.ok and call.tool_name == failed.tool_name), None)
        if right is None:
            continue
        if (text := _lesson(failed, right, later[: later.index(right)], episode)) is not None:
            pitfalls.append(_bullet(episode, failed.tool_name, text))
    return pitfalls


def _bullet(episode: Episode, tool_name: str, text: str, lookup: Lookup | None = None) -> PlaybookBullet:
    what = text if lookup is None else f"lookup {lookup.parameter}"
    key = digest("pitfall", episode.domain, episode.principal_id or "", tool_name, what)[:24]
    return PlaybookBullet(
        id=f"pitfall_{key}",
        content=text,
        section="Pitfalls",
        helpful_count=1,
        domain=episode.domain,
        tool_name=tool_name,
        principal_id=episode.principal_id,
        provenance=(episode.run_id,) if episode.run_id else (),
        lookup=lookup,
    )


def _lookup_text(lookup: Lookup) -> str:
    if lookup.allowed:
        return f"{lookup.tool_name}: {lookup.parameter} is one of {', '.join(map(repr, lookup.allowed))}."
    by = f" with {lookup.found_by}" if lookup.found_by else ""
    return f"{lookup.tool_name}: look {lookup.parameter} up{by} first; do not guess it."


def _lesson(failed: EpisodeCall, right: EpisodeCall, between: tuple[EpisodeCall, ...], episode: Episode) -> str | None:
    changed = [name for name, value in right.arguments.items() if failed.arguments.get(name) != value]
    between = tuple(call for call in between if call.ok)
    if not changed:
        return f"{failed.tool_name}: call {between[-1].tool_name} first." if between else None
    looked_up = abstract(Episode(request=episode.request, calls=(*between, right), known=episode.known))
    if looked_up is not None:
        last = looked_up.demonstration.calls[-1]
        for name in changed:
            source = last.sources.get(name)
            if isinstance(source, ResultField) and source.call is not None and source.call < len(between):
                found_by = looked_up.demonstration.calls[source.call].tool_name
                return _lookup_text(Lookup(tool_name=failed.tool_name, parameter=name, found_by=found_by))
        for name in changed:
            if isinstance(value := last.arguments.get(name), str) and " like " in value:
                return f"{failed.tool_name}: write {name} {value.strip('⟦⟧').partition(' ')[2]}."
    return f"{failed.tool_name}: {', '.join(changed)} must be right the first time; it was refused otherwise."


def lookups_of(episode: Episode) -> list[Lookup]:
    """One for each argument that was refused in this run, with the best that the run shows about its source."""
    lookups: dict[tuple[str, str], Lookup] = {}
    for at, failed in enumerate(episode.calls):
        if failed.ok or failed.error_code in listed.other_faults:
            continue
        for parameter in filter(is_name, refused(failed.arguments, failed.error)):
            allowed = allowed_in(failed.error, str(failed.arguments[parameter]))
            if allowed and all(is_choice(parameter, value) for value in allowed):
                lookups[failed.tool_name, parameter] = Lookup(
                    tool_name=failed.tool_name, parameter=parameter, allowed=allowed
                )
                continue
            # What was looked up, and refused all the same, teaches nothing.
            looked_up = _held(failed.arguments[parameter], episode.calls[:at]) is not None
            if not looked_up and (lookup := _lookup(failed, parameter, at, episode)) is not None:
                lookups[failed.tool_name, parameter] = lookup
    return list(lookups.values())


def _lookup(failed: EpisodeCall, parameter: str, at: int, episode: Episode) -> Lookup | None:
    tool, calls = failed.tool_name, episode.calls
    for number, later in enumerate(calls[at + 1 :], start=at + 1):
        if later.ok and later.tool_name == tool and parameter in later.arguments:
            if (held := _held(later.arguments[parameter], calls[:number])) is not None:
                return Lookup(tool_name=tool, parameter=parameter, found_by=held[0], field=held[1])
            return None  # another value was right, which no result held
    named = [name for name in _NAMED.findall(failed.error) if name in episode.tools and name != tool]
    reference = refers(parameter)
    if reference:
        reading = [call for call in calls if call.ok and not call.effect and parameter not in call.arguments]
        for other in reading:
            if any(path and path[-1] == parameter for path, _ in leaves(other.said.data)):
                return Lookup(tool_name=tool, parameter=parameter, found_by=other.tool_name, field=parameter)
    if named:
        return Lookup(tool_name=tool, parameter=parameter, found_by=named[-1])
    return Lookup(tool_name=tool, parameter=parameter) if reference else None


def _held(value: Any, calls: Sequence[EpisodeCall]) -> tuple[str, str] | None:
    """The tool in whose result a value stands, and where."""
    for call in reversed(calls):
        if call.ok and not call.effect:
            said = call.said
            path = said.field_of(value)
            if path is not None and written(value) in map(written, values_at(said.data, path)):
                return call.tool_name, ".".join(shown_path(path))
    return None
