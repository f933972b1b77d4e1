"""May these values flow there? Which words of a call are the person's, which come from others, and what would leave.

A call with effects is doubted where untrusted words may have caused it: nothing the person said accounts for it, or one
of its arguments is neither theirs nor singled out by their words. Any call is doubted that would carry what is private
to somebody who may not read it. No model judges; what is asked is a matter of which words stand where.

Values of a closed type (enums, booleans, quantities, dates) are not doubted by themselves: whoever may only choose one
of them says little. Who asks, or refuses, is the execution room.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from journeyman.core.calls import LONGEST_SOURCE, ArgumentLabel, DataLabel, ToolCallRecord
from journeyman.core.data import canonical_json, one_line
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import WORD, stands_in, stem, words
from journeyman.provenance.carried import LONGEST_CARRIED, Carried
from journeyman.provenance.index import is_identifier, is_when, last_word, refers
from journeyman.provenance.ledger import (
    MOST_VALUES,
    Author,
    CalledTool,
    Ledger,
    User,
    Utterance,
    inner_values,
    leaves,
    written,
)
from journeyman.provenance.said import (
    LONGEST_READ,
    Day,
    Said,
    days_in,
    figures_in,
    lists,
    may_hold,
    plain,
    same_day,
    taken_apart,
    times_in,
)

MOST_NAMED = 2
"""Doubts that a person is told of, and whose words are kept with the call."""
LONGEST_SHOWN = 60
PIECE = 65_536
"""Characters of short texts that are searched as one."""
LEAST_DIGITS = 4
"""Of a number that tells something private."""
MOST_SENT = 8
"""Earlier arguments of a tool that are read together with the next: data may leave in pieces."""

_SHAPES = (
    re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    re.compile(r"(?:https?://|www\.)[^\s\"'<>)\]},]+[\w/]", re.IGNORECASE),
    re.compile(r"\b[A-Z]{2}\d{2}[A-Z0-9]{10,30}\b"),
    re.compile(r"\b(?=[\w-]*\d{4})[\w-]{5,40}\b"),
)
"""What names somebody or something by itself: mail addresses, web addresses, accounts, numbers and codes."""
_AMOUNT = re.compile(r"[$€£]\s?\d[\d,.]*\d|\b\d[\d,]*\.\d\d\b|\b\d[\d.]*,\d\d\b")
_iso_time = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d\S*)?").fullmatch
_zone = re.compile(r"(?<=\d)[+-]\d\d:\d\d$").search
_marks = re.compile(r"\b(?=\w*[_\d])\w{4,}\b|\b[A-Z]{3,}\b").findall
_invisible = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_encoded = re.compile(r"(?=\S*\d|\S*[a-z][A-Z])\S{16,}").search
_BARE_HOST = re.compile(r"\b[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b", re.IGNORECASE)
_HOST = re.compile(r"^(?:[\w.-]+://|www\.)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a person is to see a call."""

    argument: str
    """The argument in question; empty for the call itself."""
    why: str
    source: str = ""
    words: str = ""
    """Of the argument, those in question."""
    private: DataLabel | None = None
    """That of what would leave with it."""

    @property
    def label(self) -> ArgumentLabel:
        kept = self.private or DataLabel(writer="untrusted", source=self.source)
        return ArgumentLabel(**dict(kept), words=_short(self.words))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is doubted of one call, and whether all of it comes from the person."""

    doubts: tuple[Doubt, ...] = ()
    targets: str = ""
    from_person: bool = False
    in_their_words: bool = False
    """Whether every text in it is made of the person's own words: what is stored of it needs no label."""

    @property
    def reason(self) -> str:
        return one_line("; ".join(doubt.why for doubt in self.doubts[:MOST_NAMED]), most=160)

    @property
    def labels(self) -> dict[str, ArgumentLabel]:
        return {doubt.argument: doubt.label for doubt in self.doubts[:MOST_NAMED] if doubt.argument}

    @property
    def key(self) -> str:
        """What somebody who allows it for a session allows: words of these sources, to whom and what the call names."""
        return "\n".join([*sorted({doubt.source for doubt in self.doubts}), "to", self.targets])


@lru_cache(maxsize=4_096)
def default_reads(name: str, *, elsewhere: bool, reads_only: bool) -> tuple[str, ...]:
    """What a tool reads that does not say so: what a foreign server gives is untrusted, else its name tells."""
    parts = words(name)
    if not elsewhere and not reads_only and not (parts and parts[0] in lists.reading):
        return ()
    named = {*parts, "_".join(parts[-2:])}
    # Somebody's address is no mail.
    untrusted = elsewhere or (bool(named & lists.untrusted) and named.isdisjoint({"address", "addresses"}))
    return (*(("untrusted",) if untrusted else ()), *(("private",) if named & lists.private else ()))


@lru_cache(maxsize=4_096)
def label_for(name: str, reads: tuple[str, ...]) -> DataLabel | None:
    """The label of a tool's results, without where they were read; None for what is our own and for everybody."""
    private = [item.partition(":")[2] for item in reads if item.startswith("private")]
    if not private and "untrusted" not in reads:
        return None
    return DataLabel(
        writer="untrusted" if "untrusted" in reads else "tools",
        readers=("principal", *(name[:LONGEST_SHOWN] for name in private[:3] if name)) if private else ("public",),
        source=one_line(f"the result of {name}", most=LONGEST_SOURCE),
    )


def with_source(label: DataLabel, arguments: Mapping[str, Any]) -> DataLabel:
    """The label with the page or file that was read, where an argument of the call names one."""
    for value in arguments.values():
        if not isinstance(value, str) or not 3 <= len(value) <= 500:
            continue
        place = f"the page {_host(value)}" if _HOST.match(value) else f"the file {value}" if _is_file(value) else ""
        if place:
            return label.model_copy(update={"source": one_line(place, most=LONGEST_SOURCE)})
    return label


def _is_file(text: str) -> bool:
    return " " not in text and "." in text[1:-1] and "@" not in text


def _host(address: str) -> str:
    try:
        return (urlsplit(address if "://" in address else f"//{address}").hostname or address).lower()
    except ValueError:
        return address.lower()


class _Words:
    """Some texts together. They are searched as they are: most of their words nobody ever looks for."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._pieces: list[tuple[str, str]] = []
        """All of them, some together: as they are, and in lower case."""
        self._joined = 0
        self._stems: set[str] = set()
        self._read = 0

    def add(self, text: str) -> None:
        self.texts.append(text[:LONGEST_READ])

    def _searched(self) -> list[tuple[str, str]]:
        if self._joined < len(self.texts):
            new = "\n".join(self.texts[self._joined :])
            self._joined = len(self.texts)
            if not new.isascii():
                new = _invisible.sub("", unicodedata.normalize("NFKC", new))
            if self._pieces and len(self._pieces[-1][0]) < PIECE:
                new = f"{self._pieces.pop()[0]}\n{new}"
            lowered = new.lower()
            self._pieces.append((new if len(new) == len(lowered) else lowered, lowered))
        return self._pieces

    @property
    def stems(self) -> set[str]:
        """The stems of all words: for few texts."""
        for text in self.texts[self._read :]:
            self._stems.update(map(stem, words(text)))
        self._read = len(self.texts)
        return self._stems

    def has(self, value: str) -> bool:
        wanted = value.strip().lower()
        return any(wanted in text and stands_in(text, wanted) for _, text in self._searched())

    def speaks(self, base: str) -> bool:
        """Whether a word with this stem stands in one of them. A stem is how such a word begins, but for a last y."""
        begins = base.removesuffix("y")
        for text, lowered in self._searched():
            at = lowered.find(begins)
            while at >= 0:
                # A word, or a part of one that begins with a capital, as in an identifier.
                if not lowered[at - 1 : at].isalpha() or text[at].isupper():
                    word = WORD.match(text, at)
                    if word is not None and stem(word[0].casefold()) == base:
                        return True
                at = lowered.find(begins, at + 1)
        return False


@lru_cache(maxsize=64)
def _stems(listed: frozenset[str]) -> frozenset[str]:
    return frozenset("_".join(map(stem, words(item))) for item in listed)


@lru_cache(maxsize=4_096)
def _action(name: str) -> tuple[bool, frozenset[str], tuple[str, ...]]:
    """What a tool does by its name: whether that is a known change, the stems of its verbs, and what it is done to."""
    named = [stem(word) for word in words(name)]
    groups = (lists.pay, lists.send, lists.create, lists.update, lists.delete, lists.share, lists.run)
    own = next((belongs for word in named if (belongs := [group for group in groups if word in _stems(group)])), [])
    verbs = frozenset[str]().union(*map(_stems, own)) or frozenset(named)
    return bool(own), verbs, tuple(word for word in named if len(word) > 2 and not (own and word in verbs))


@dataclass(slots=True)
class Flow:
    """Judges the calls of one run by its ledger."""

    ledger: Ledger
    person: _Words = field(default_factory=_Words)
    """What the person and the operator have said, and what the person has approved."""
    own: _Words = field(default_factory=_Words)
    """What our own tools have said."""
    foreign: _Words = field(default_factory=_Words)
    """What untrusted others have."""
    made: dict[str, int] = field(default_factory=dict)
    """Calls that have succeeded, and after how many of the person's texts."""
    approved: dict[str, int] = field(default_factory=dict)
    """Tools of calls that a person has seen and said yes to, and after how many of their texts; one that a grant let
    through nobody has seen."""
    requests: list[Said] = field(default_factory=list)
    """What the person has said, each taken apart."""
    pictured: str = ""
    """Where a picture or a file of others was seen, whose words stand nowhere."""
    _heard: int = 0
    _chars: int = 0
    _seen: int = 0
    _indexed: int = 0
    _others: list[Utterance] = field(default_factory=list)
    _sent: list[str] = field(default_factory=list)
    _spoken: dict[str, tuple[int, list[set[str]]]] = field(default_factory=dict)
    """By call: of how many of the person's texts it is known what each row of its result shares with them."""
    _held: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """By value: the calls in whose results it has a field of its own, and the rows."""
    _results: dict[str, Sequence[Any]] = field(default_factory=dict)
    """By call: the rows of its result."""
    _own: list[ToolCallRecord] = field(default_factory=list)
    """Calls whose results are our own tools' words alone."""
    _hidden: tuple[tuple[int, ...], Carried] | None = None

    def judge(
        self,
        specification: ToolSpecification,
        arguments: Mapping[str, Any],
        *,
        reads_only: bool,
        sends: tuple[str, ...] | None,
        elsewhere: str = "",
        keeps_labels: bool = False,
        always: bool = False,
    ) -> Verdict | None:
        """What there is to doubt; None where nothing was read that is untrusted or private, unless ``always``."""
        taint = self.ledger.taint
        if taint is None and not always:
            return None
        if reads_only and not always and taint is not None and not taint.private:
            return None  # reading is free, and there is nothing that may not leave
        self._listen()
        call = _Call(self, specification, arguments)
        doubts: list[Doubt] = []
        if not reads_only and not keeps_labels:
            if taint is not None and taint.untrusted:
                doubts += call.doubted()
            elif always:
                call.doubted()
        if taint is not None and taint.private:
            doubts += self._leaving(call, reads_only=reads_only, sends=sends, elsewhere=elsewhere)
        return Verdict(
            tuple(doubts),
            call.targets if doubts else "",
            from_person=call.from_person,
            in_their_words=keeps_labels and call.in_their_words,
        )

    @property
    def unread(self) -> int:
        """Characters that the next call has to be judged by; all of them where some are private."""
        taint = self.ledger.taint
        return self.ledger.heard_chars - (0 if taint is not None and taint.private else self._chars)

    def _listen(self) -> None:
        """Take in what was said since the last call."""
        for record in islice(self.ledger.records.values(), self._seen, None):
            if record.success:
                self.made[_as_made(record.tool_name, record.arguments)] = len(self.requests)
            if record.success and self.ledger.decided(record):
                self.approved[record.tool_name] = len(self.requests)
                self.person.add("\n".join(written(value) for _, value in leaves(record.arguments)))
        self._seen = len(self.ledger.records)
        heard = self.ledger.utterances
        for item in heard[self._heard :]:
            if type(item.speaker) in (User, Author):
                self.person.add(item.text)
                self.requests.append(taken_apart(item.text))
            elif item.label is not None and item.label.untrusted:
                self._others.append(item)
                self.foreign.add(item.text)
                self.pictured = self.pictured or (item.label.source if item.seen else "")
            elif type(item.speaker) is CalledTool and self.derived(self._record(item)):
                self.foreign.add(item.text)
            elif type(item.speaker) is CalledTool:
                self.own.add(self._first_said(item))
        self._heard, self._chars = len(heard), self.ledger.heard_chars

    def _first_said(self, item: Utterance) -> str:
        """What one of our own tools said, without what it only repeats of others' words that it was given."""
        record = self._record(item)
        text = item.text[:LONGEST_READ]
        for _, value in leaves({} if record is None else record.arguments):
            given = written(value)
            if len(given) > 2 and not self.person.has(given):
                text = text.replace(given, " ")
        return text

    def derived(self, record: ToolCallRecord | None) -> bool:
        """Whether one of our own tools was given a text of others, not only a name: what it makes of it is theirs."""
        if record is None or self.ledger.taint is None:
            return False
        given = (value for _, value in leaves(record.arguments) if isinstance(value, str))
        return any(self.foreign.has(text) and _holds_more(text) and not self.person.has(text) for text in given)

    def _record(self, item: Utterance) -> ToolCallRecord | None:
        return self.ledger.records.get(item.speaker.call_id) if isinstance(item.speaker, CalledTool) else None

    @property
    def source(self) -> str:
        """Where others' words were read first."""
        return "" if self.ledger.taint is None else self.ledger.taint.source

    def where(self, text: str) -> str:
        """Whose words a value is, for people."""
        for item in self._others:
            if item.label is not None and stands_in(item.text[:LONGEST_READ], text):
                return item.label.source
        return ""

    def accounts_for(self, specification: ToolSpecification, *, anchored: bool) -> bool:
        """Whether the person asked for what this tool does: a verb of the same action, and what it is done to.

        ``anchored``: one of the arguments is something the person named.
        """
        seen = self.approved.get(specification.name)
        acts, verbs, nouns = _action(specification.name)
        asked = self._asked(verbs, since=seen or 0)
        if asked is False or (acts and not asked and seen is None):
            return False
        return seen is not None or (anchored and acts) or any(word in self.person.stems for word in nouns)

    def speak_of(self, listed: frozenset[str]) -> bool:
        """Whether one of the person's orders has one of these words."""
        return any(not said.asked.isdisjoint(_stems(listed)) for said in self.requests)

    def speaks_of(self, name: str) -> bool:
        """Whether the person has said all words of a name."""
        return all(stem(word) in self.person.stems for word in words(name))

    def _asked(self, verbs: frozenset[str], *, since: int) -> bool | None:
        """Whether the person asks for this, or forbids it, in what they said last of it; None where they do neither."""
        for said in reversed(self.requests[since:]):
            if not said.forbidden.isdisjoint(verbs):
                return False
            if not said.asked.isdisjoint(verbs - said.named):
                return True
        return None

    def instead(self, call: _Call, name: str, value: str, *, number: bool) -> bool:
        """Whether a figure, a day or a time of others stands in place of the person's, which the call leaves out."""
        if self.person.has(value):
            return False
        if number:
            said = next((each.figures for each in reversed(self.requests) if each.figures), frozenset())
            if self.requests and self.requests[-1].part:
                return self._theirs(value)  # half of theirs is none of theirs
            if self.speak_of(lists.computed):
                return False
            if last_word(name) in lists.counted and self._one_of(call):
                said |= {"1"}
            return plain(value) not in said and bool(said - call.figures) and self._theirs(value)
        days, times = days_in(value), times_in(value)
        if (
            (zone := _zone(value))
            and self.foreign.has(zone[0])
            and not (self.person.has(zone[0]) or self.own.has(zone[0]))
        ):
            return True
        return self._other_day(call, days) or self._other_time(call, times)

    def _one_of(self, call: _Call) -> bool:
        """Whether the person said what is counted with an article."""
        things = "|".join(re.escape(text) for _, _, _, text in call.values)
        article = re.compile(rf"\b(?:an?|one|eine?[nmrs]?)\s+(?:{things})(?!\w)", re.IGNORECASE)
        return bool(things) and any(map(article.search, self.person.texts))

    def _theirs(self, value: str) -> bool:
        figure = plain(value)
        return bool(self.pictured) or any(
            may_hold(text, figure) and figure in figures_in(text) for text in self.foreign.texts
        )

    def _other_day(self, call: _Call, days: frozenset[Day]) -> bool:
        said = next((each for each in reversed(self.requests) if each.days or each.relative), None)
        if not days or said is None or any(same_day(one, two) for one in said.days for two in (*days, *call.days)):
            return False
        known = [day for text in self.own.texts for day in days_in(text)]
        theirs = [day for text in self.foreign.texts for day in days_in(text) if day[1] is not None]
        return bool(self.pictured) or any(same_day(one, two) and two not in known for one in days for two in theirs)

    def _other_time(self, call: _Call, times: frozenset[tuple[int, int]]) -> bool:
        said = next((each.times for each in reversed(self.requests) if each.times), frozenset())
        if not times or not said or not said.isdisjoint(times | call.times):
            return False
        return bool(self.pictured) or any(not times.isdisjoint(times_in(text)) for text in self.foreign.texts)

    def singled_out(self, value: str, *, reference: bool = False) -> bool:
        """Whether the person's words single out the row of a result in which a value has a field of its own.

        A ``reference`` only names the row: then it is enough that they name who is in it, or say that it is the last.
        """
        self._index()
        shape = next((shape for shape in _SHAPES[:3] if shape.fullmatch(value)), None)
        if shape is not None and any(self._looked_up_by_name(record, value, shape) for record in self._own):
            return True
        for call_id, holding in self._held.get(value, {}).items():
            if len(holding) != 1:
                continue
            rows = self._results[call_id]
            spoken = [len(texts - {value}) for texts in self._spoken_of(call_id, rows)]
            if reference and not any(spoken):
                spoken = self._naming(rows)
            best = max(spoken)
            likely = [row for row, count in zip(rows, spoken, strict=True) if count == best]
            if best and spoken[holding[0]] == best and (len(likely) == 1 or self._last(rows[holding[0]], likely)):
                return True
        return False

    def _index(self) -> None:
        """Take in the rows of the results since the last time."""
        for record in islice(self.ledger.records.values(), self._indexed, None):
            foreign = (record.label is not None and record.label.untrusted) or self.derived(record)
            if not foreign and record.success:
                self._own.append(record)
            rows = self._results[record.call_id] = _rows(record.result, foreign=foreign)
            for at, row in enumerate(rows):
                for value in set(_fields(row, foreign=foreign)):
                    self._held.setdefault(value, {}).setdefault(record.call_id, []).append(at)
        self._indexed = len(self.ledger.records)

    def _looked_up_by_name(self, record: ToolCallRecord, value: str, shape: re.Pattern[str]) -> bool:
        """Whether one of our own tools, given nothing but the person's words, found this address and no other."""
        given = [text for _, text in leaves(record.arguments) if isinstance(text, str)]
        if not given or not all(map(self.person.has, given)):
            return False
        return {address.casefold() for address in shape.findall(written(record.result))} == {value.casefold()}

    def _naming(self, rows: Sequence[Any]) -> list[int]:
        """Which rows have somebody in them whom the person names by a part of their name; only one may be meant."""
        said = self.person.stems
        named = [
            {text for text in _identities(row) if any(len(word) > 2 and stem(word) in said for word in words(text))}
            for row in rows
        ]
        return [len(texts) if len(set[str]().union(*named)) == 1 else 0 for texts in named]

    def _last(self, row: Any, others: Sequence[Any]) -> bool:
        """Whether the person speaks of the last one, and this row is it by a time that all of them have."""
        if not self.speak_of(lists.last):
            return False
        for name in row if isinstance(row, dict) else ():
            times = [str(other.get(name, "")) for other in others if isinstance(other, dict)]
            if all(_iso_time(time) for time in times) and times.count(max(times)) == 1:
                return str(row[name]) == max(times)
        return False

    def _spoken_of(self, call_id: str, rows: Sequence[Any]) -> list[set[str]]:
        """The fields of each row that stand in the person's words, each as a whole."""
        said, known = self._spoken.get(call_id, (0, []))
        if said != len(self.person.texts):
            known = [
                {
                    text
                    for _, value in leaves(row)
                    if 2 < len(text := written(value).strip()) <= LONGEST_CARRIED and self.person.has(text)
                }
                for row in rows
            ]
            self._spoken[call_id] = len(self.person.texts), known
        return known

    def looked_up(self, value: str, numbers: Sequence[str]) -> str | None:
        """The text in which the person has the value looked up: they named it, and no value of that kind themselves;
        it has only this one, and no other amounts than the call."""
        shape = next((shape for shape in _SHAPES if shape.fullmatch(value)), None)
        if shape is None or not (
            self.speak_of(lists.looked_up) or (self.speak_of(lists.found) and self.speak_of(lists.details))
        ):
            return None
        if any(not _is_file(piece) for text in self.person.texts for piece in shape.findall(text)):
            return None
        for record in self.ledger.records.values():
            if not record.success or not self.named(record):
                continue
            text = written(record.shown)[:LONGEST_READ]
            if {piece.casefold() for piece in shape.findall(text)} != {value.casefold()}:
                continue
            amounts = {plain(piece) for piece in _AMOUNT.findall(text)}
            unsaid = [number for number in map(plain, numbers) if not self.person.has(number)]
            if not unsaid or amounts == set(unsaid):
                return text
        return None

    def named(self, record: ToolCallRecord) -> bool:
        """Whether the person named what a call has read, e.g. a file or an address."""
        given = (written(value) for _, value in leaves(record.arguments) if isinstance(value, str))
        return any(len(text) > 2 and (_is_file(text) or _HOST.match(text)) and self.person.has(text) for text in given)

    # --- what would leave

    def _leaving(
        self, call: _Call, *, reads_only: bool, sends: tuple[str, ...] | None, elsewhere: str
    ) -> Iterator[Doubt]:
        if sends == ():
            return
        allowed = [item.removeprefix("to:") for item in sends or () if item.startswith("to:")]
        allowed += [text for _, name, _, text in call.values if name in (sends or ())]
        if sends and not allowed:
            return  # nobody is named to whom it would go
        texts = [item for item in self.ledger.utterances if item.label is not None and item.label.private]
        released = call.accounted and not reads_only
        private = [item for item in texts if not self._may_know(item, allowed, released, elsewhere)]
        if not private:
            return
        known = len(self.ledger.utterances), *map(id, private)
        if self._hidden is None or self._hidden[0] != known:
            self._hidden = known, Carried(private, self.person.texts, self.ledger.utterances)
        hidden = self._hidden[1]
        everything = not reads_only or sends is not None or bool(elsewhere)
        earlier = self._sent
        for path, name, _, text in call.values:
            address = bool(_HOST.match(text))
            if not everything and not address and name not in lists.recipient and name != "query":
                continue
            source = private[0].label.source if private[0].label is not None else ""
            if address and self._made_up(text, private):
                why = f"{path} '{_short(text)}' was put together after {source} was read, which only you may read"
                yield Doubt(path, why, source, text, private[0].label)
                continue
            if hidden.found_in(text, earlier):
                why = f"{path} '{_short(text)}' carries words of {source}, which only you may read"
                yield Doubt(path, why, source, text, private[0].label)
            if not self.person.has(text):
                earlier.append(text)
                del earlier[:-MOST_SENT]
        if everything:
            yield from self._leaving_figures(call, private)

    def _leaving_figures(self, call: _Call, private: Sequence[Utterance]) -> Iterator[Doubt]:
        """Numbers that stand in private texts and nowhere else: what is bought for Ada's salary tells it."""
        for path, value in call.numbers:
            figure = plain(written(value))
            if sum(map(str.isdigit, figure)) < LEAST_DIGITS:
                continue
            held = [item for item in self.ledger.utterances if figure in figures_in(item.text[:LONGEST_READ])]
            first = held[0].label if held and all(item in private for item in held) else None
            if first is not None:
                why = f"{path} '{figure}' stands in {first.source}, which only you may read"
                yield Doubt(path, why, first.source, figure, first)

    def _made_up(self, address: str, private: Sequence[Utterance]) -> bool:
        """Whether nobody has said this address, nor the person its host: then any part of it may carry data."""
        said = (item for item in self.ledger.utterances if item not in private)
        return not self.person.has(_host(address)) and not any(item.quotes(address) for item in said)

    def _may_know(self, item: Utterance, recipients: Sequence[str], released: bool, elsewhere: str) -> bool:
        """Whether a private text may go to all of these, or the person has named it in asking for the call."""
        readers = item.label.readers if item.label is not None else ()
        if recipients and all(one in readers for one in recipients):
            return True
        record = self._record(item)
        if record is None:
            return False
        server = record.tool_name.partition(".")[0]
        if elsewhere and "." in record.tool_name and repr(server) in elsewhere:
            return True  # it came from there
        return released and self.named(record)


class _Call:
    """One call: its values, and what of them is the person's."""

    def __init__(self, flow: Flow, specification: ToolSpecification, arguments: Mapping[str, Any]) -> None:
        self.flow, self.specification, self.name = flow, specification, specification.name
        properties = specification.parameters.get("properties")
        schemas = properties if isinstance(properties, dict) else {}
        self._named_schemas = specification.parameters.get("$defs") or {}
        self._all = [
            item
            for name, value in arguments.items()
            for item in inner_values(name, schemas.get(name), value, most=MOST_VALUES + 1)
        ]
        keyed = [(name, value) for name, value in arguments.items() if isinstance(value, dict)]
        self._all += [(f"{name}.{key}", name, None, key) for name, value in keyed for key in _keys(value)]
        self.values = [
            (path, name, schema, text)
            for path, name, schema, value in self._all
            if isinstance(value, str) and (text := value.strip())
        ]
        self._made = _as_made(specification.name, arguments)
        self.from_person = False
        self._looked_up: str | None = None
        """The text out of which the person had something looked up for this call."""

    @property
    def numbers(self) -> list[tuple[str, Any]]:
        return [(path, value) for path, name, _, value in self._all if _is_number(value) and not refers(name)]

    @cached_property
    def accounted(self) -> bool:
        flow = self.flow
        texts = [text for _, _, _, text in self.values]
        numbers = [written(value) for _, name, _, value in self._all if _is_number(value) and refers(name)]
        named = (written(value) for _, name, _, value in self._all if refers(name))
        anchored = any(map(flow.person.has, texts)) or any(map(flow.singled_out, (*texts, *numbers)))
        anchored = anchored or any(flow.singled_out(text, reference=True) for text in named)
        anchored = anchored or any(flow.looked_up(text, ()) for text in texts)
        return flow.accounts_for(self.specification, anchored=anchored)

    @cached_property
    def figures(self) -> frozenset[str]:
        found = set[str]()
        for _, _, _, value in self._all:
            if not isinstance(value, bool):
                found.add(plain(text := written(value)))
                if not text.isdecimal():
                    found |= figures_in(text)
        return frozenset(found)

    @cached_property
    def days(self) -> frozenset[Day]:
        return frozenset(day for _, _, _, text in self.values for day in days_in(text))

    @cached_property
    def times(self) -> frozenset[tuple[int, int]]:
        return frozenset(time for _, _, _, text in self.values for time in times_in(text))

    @property
    def in_their_words(self) -> bool:
        said = self.flow.person.stems
        return all(stem(word) in said for _, _, _, text in self.values for word in words(text) if len(word) > 3)

    @property
    def targets(self) -> str:
        """What the call names that is no free text: to whom, and to what."""
        return "\n".join(f"{path}={text}" for path, name, _, text in self.values if not _is_free(name, text))

    def doubted(self) -> list[Doubt]:
        # Texts in free words last: they may repeat a text out of which something was to be looked up.
        ordered = sorted(self._all, key=lambda item: _is_free(item[1], written(item[3])))
        doubts = [doubt for item in ordered[:MOST_VALUES] if (doubt := self._doubt(*item)) is not None]
        flow, why = self.flow, ""
        if len(ordered) > MOST_VALUES:
            why = f"more than {MOST_VALUES} values, too many to look at, and {flow.source} was read before"
        elif not doubts and flow.made.get(self._made) == len(flow.requests) and not self.specification.idempotent:
            why = f"the same call was made before, you did not ask for it again, and {flow.source} was read"
        elif not doubts and not self.accounted:
            why = f"nothing you said asks for {self.name}, and {flow.source} was read before"
        if why:
            doubts.append(Doubt("", why, flow.source))
        self.from_person = not doubts
        return doubts

    def _doubt(self, path: str, name: str, schema: Any, value: Any) -> Doubt | None:
        text = written(value).strip()
        flow = self.flow
        if isinstance(value, bool) or _is_closed(schema, value, self._named_schemas):
            if not self._other_choice(schema, value) and not self._other_switch(path, name):
                return None
            return self._not_theirs(path, text, "is not what you said")
        reference = refers(name) or is_identifier(name, value) or _is_recipient(name)
        if not text:
            return None
        if not reference and ((number := _is_number(value)) or is_when(text)):
            if not flow.instead(self, name, text, number=number):
                return None
            return self._not_theirs(path, text, "stands in place of what you said")
        if flow.person.has(text):
            if last_word(name) not in lists.exact or any(text in said for said in flow.person.texts):
                return None
            return self._not_theirs(path, text, "is written otherwise than you said")
        free = not reference and _is_free(name, text)
        if (not free or len(text) <= LONGEST_SHOWN) and flow.singled_out(text, reference=refers(name)):
            return None
        if free:
            return self._free(path, text)
        numbers = [written(value) for _, name, _, value in self._all if _is_number(value) and not refers(name)]
        if (looked_up := flow.looked_up(text, numbers)) is not None:
            self._looked_up = looked_up
            return None
        if source := flow.where(text):
            return Doubt(path, f"{path} '{_short(text)}' stands in {source}, not in your request", source, text)
        return self._not_theirs(path, text, "is not in your request")

    def _not_theirs(self, path: str, text: str, why: str) -> Doubt:
        source = self.flow.where(text) or self.flow.source
        return Doubt(path, f"{path} '{_short(text)}' {why}, and {source} was read before", source, text)

    def _other_choice(self, schema: Any, value: Any) -> bool:
        """Whether others name this choice, and the person another one."""
        choices = schema.get("enum") if isinstance(schema, dict) else None
        if not isinstance(choices, list) or not isinstance(value, str) or self.flow.speaks_of(value):
            return False
        others = (one for one in choices if isinstance(one, str) and one != value)
        return any(map(self.flow.speaks_of, others)) and all(map(self.flow.foreign.speaks, map(stem, words(value))))

    def _other_switch(self, path: str, name: str) -> bool:
        """Whether it is one of many that a tool takes by any name, which others name and the person does not."""
        schema, key = self.specification.parameters["properties"].get(name) or {}, path.rpartition(".")[2]
        if path == name or "properties" in schema or "$ref" in schema or self.flow.speaks_of(key):
            return False
        return all(map(self.flow.foreign.speaks, map(stem, words(key))))

    def _free(self, path: str, text: str) -> Doubt | None:
        """A text in free words may hold others' where the person asked for that; their addresses never."""
        flow = self.flow
        for shape in (*_SHAPES[:3], _BARE_HOST):
            for piece in shape.findall(text):
                if shape is _BARE_HOST and not flow.foreign.has(piece):
                    continue
                if not flow.person.has(piece) and not flow.own.has(piece):
                    source = flow.where(piece)
                    place = f"stands in {source}, not in your request" if source else "is not in your request"
                    return Doubt(path, f"{path} names '{_short(piece)}', which {place}", source, piece)
        unsaid = [
            (word, base)
            for word in dict.fromkeys(words(text))
            if len(word) > 3 and (base := stem(word)) not in flow.person.stems and not flow.own.speaks(base)
        ]
        theirs = [word for word, base in unsaid if flow.foreign.speaks(base)]
        theirs += [mark for mark in _marks(text) if flow.foreign.has(mark) and not flow.person.has(mark)]
        if not theirs and flow.pictured:
            theirs = [word for word, _ in unsaid if word not in lists.courtesy]
        if not theirs or flow.speak_of(lists.content):
            return None
        if self._looked_up is not None and all(stands_in(self._looked_up, word) for word in theirs):
            return None
        source = flow.where(theirs[0]) or flow.pictured or flow.source
        why = f"{path} '{_short(text)}' repeats {source}, which you did not ask to pass on"
        return Doubt(path, why, source, text)


def _as_made(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name} {canonical_json(dict(arguments))}"


def _rows(result: Any, *, foreign: bool) -> Sequence[Any]:
    """The rows of a result: a list, or the only list of objects in it. What is one object is a row of our own alone:
    all of a page is its author's."""
    if isinstance(result, dict):
        inner = [item for item in result.values() if isinstance(item, list) and item and isinstance(item[0], dict)]
        result = inner[0] if len(inner) == 1 else () if foreign else [result]
    return result if isinstance(result, list) and len(result) <= MOST_VALUES else ()


def _fields(row: Any, *, foreign: bool) -> Iterator[str]:
    """What a row has in fields of their own; of others' rows in those that name the row, or who is in it."""
    for name, item in row.items() if isinstance(row, dict) else ():
        if not foreign or _names_row(name):
            given = item if isinstance(item, list) else (item,)
            yield from (written(one).strip() for one in given if isinstance(one, str | int | float))


@lru_cache(maxsize=4_096)
def _names_row(name: str) -> bool:
    return refers(name) or not lists.identity.isdisjoint(words(name))


def _identities(row: Any) -> Iterator[str]:
    """Who is in a row."""
    for name, item in row.items() if isinstance(row, dict) else ():
        if not lists.identity.isdisjoint(words(name)) and not refers(name):
            yield from (one for one in (item if isinstance(item, list) else (item,)) if isinstance(one, str))


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().replace(".", "", 1).isdigit()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_closed(schema: Any, value: Any, named: Mapping[str, Any]) -> bool:
    """Whether only some values fit, or it is what the tool takes by itself."""
    if not isinstance(schema, dict):
        return False
    if "default" in schema and schema["default"] == value:
        return True
    meant = named.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    return isinstance(meant, dict) and ("enum" in meant or "const" in meant)


def _holds_more(text: str) -> bool:
    """Whether a text is more than a name: long, or with an address or something encoded in it."""
    return len(text) > LONGEST_SHOWN or _encoded(text) is not None or any(shape.search(text) for shape in _SHAPES[:3])


def _keys(value: Mapping[str, Any]) -> Iterator[str]:
    """Keys that are written like a name of somebody or something, and not like that of a field."""
    for key in value:
        if any(shape.search(key) for shape in _SHAPES):
            yield key


@lru_cache(maxsize=4_096)
def _is_recipient(name: str) -> bool:
    named = words(name)
    return name in lists.recipient or bool(named and named[-1] in lists.recipient)


def _is_free(name: str, text: str) -> bool:
    free = _is_free_text(name)
    return free if free is not None else len(text) > 200 or len(text.split()) > 7


@lru_cache(maxsize=4_096)
def _is_free_text(name: str) -> bool | None:
    """Whether an argument of this name is text in free words; None where its name does not tell."""
    named = words(name)
    if _is_recipient(name) or (named and named[-1] in lists.executed):
        return False
    return True if named and named[-1] in lists.free_text else None


def _short(text: str) -> str:
    return one_line(text, most=LONGEST_SHOWN)
