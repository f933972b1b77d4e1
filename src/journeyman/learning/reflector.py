"""What an ended run teaches: whether it was good, by the best label there is, and what of it is worth keeping."""

from __future__ import annotations

from dataclasses import dataclass, field

from journeyman.core.data import digest
from journeyman.core.labels import Label, LabelSource, best_label
from journeyman.core.playbook import Lookup, PlaybookBullet
from journeyman.learning.abstraction import Abstracted, abstract
from journeyman.learning.episodes import Episode, EpisodeCall, normalised
from journeyman.learning.lookups import NOT_THE_CALLS_FAULT, lookups_of


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

    def reflect(self, episode: Episode) -> Lesson | None:
        """The lesson of an episode; None where nobody can say how it went."""
        abstracted = abstract(episode)
        label = label_of(episode, abstracted)
        if label is None:
            return None
        sequence = normalised(call.tool_name for call in episode.used)
        pitfalls = [_bullet(episode, lookup.tool_name, _told(lookup), lookup) for lookup in lookups_of(episode)]
        if label.value == "good":
            said = {pitfall.content for pitfall in pitfalls}
            pitfalls += [pitfall for pitfall in _pitfalls(episode) if pitfall.content not in said]
        return Lesson(episode, label, sequence, abstracted, pitfalls)


def label_of(episode: Episode, abstracted: Abstracted | None) -> Label | None:
    """The most reliable label there is: what somebody said, what their decisions say, what the calls say."""
    said = [*episode.labels, *(label for label in (decision(episode),) if label is not None)]
    return best_label(said) or episode.verdict or judge(episode, abstracted)


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
    told: list[PlaybookBullet] = []
    for at, failed in enumerate(episode.calls):
        if failed.ok or failed.error_code in NOT_THE_CALLS_FAULT:
            continue
        later = episode.calls[at + 1 :]
        right = next((call for call in later if call.ok and call.tool_name == failed.tool_name), None)
        if right is None:
            continue
        text = _lesson(failed, right, later[: later.index(right)], episode)
        if text is not None:
            told.append(_bullet(episode, failed.tool_name, text))
    return told


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


def _told(lookup: Lookup) -> str:
    by = f" with {lookup.found_by}" if lookup.found_by else ""
    return f"{lookup.tool_name}: look {lookup.parameter} up{by} first; do not guess it."


def _lesson(failed: EpisodeCall, right: EpisodeCall, between: tuple[EpisodeCall, ...], episode: Episode) -> str | None:
    changed = [name for name, value in right.arguments.items() if failed.arguments.get(name) != value]
    between = tuple(call for call in between if call.ok)
    if not changed:
        if between:
            return f"{failed.tool_name}: call {between[-1].tool_name} first."
        return None
    looked_up = abstract(Episode(request=episode.request, calls=(*between, right), known=episode.known))
    if looked_up is not None:
        last = looked_up.demonstration.calls[-1]
        for name in changed:
            kind, _, rest = last.sources.get(name, "").partition(" ")
            number = rest.partition(" ")[0]
            if kind == "result" and number.isdigit() and int(number) < len(between):
                found_by = looked_up.demonstration.calls[int(number)].tool_name
                return f"{failed.tool_name}: look {name} up with {found_by} first; do not guess it."
        for name in changed:
            if isinstance(value := last.arguments.get(name), str) and " like " in value:
                return f"{failed.tool_name}: write {name} {value.strip('⟦⟧').partition(' ')[2]}."
    return f"{failed.tool_name}: {', '.join(changed)} must be right the first time; it was refused otherwise."
