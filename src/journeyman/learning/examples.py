"""Worked examples: a request and its calls with values that can be seen, and what a new request says in their place.

A small model copies the form of a call it sees; one that is only described it cannot fill in. The values are made up in
the form of the real ones, the same wherever a value stands, unless the teacher lets their own be shown. Words that name
a choice are nobody's and stay. From several examples it can be told which words of a new request stand for which value.
"""

from __future__ import annotations

import calendar
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from journeyman.core.calls import ResultField
from journeyman.core.data import digest
from journeyman.core.playbook import Demonstration, WorkedExample
from journeyman.core.words import stands_in, stem, words
from journeyman.learning import listed, shapes
from journeyman.provenance.hints import nearest_choice
from journeyman.provenance.index import identifies
from journeyman.provenance.ledger import leaves, written
from journeyman.retrieval.search import terms
from journeyman.sensitive.tokens import redacted

_KINDS = [frozenset(map(stem, kind)) for kind in (listed.takes_back, listed.makes, listed.alters)]
"""Verbs by which tools' names begin, of the same kind each."""
_TAKES_BACK, _MAKES, _ALTERS = _KINDS
MOST_EXAMPLES = 12
"""Of one strategy: so many runs are shown."""
MOST_TRIES = 20
_MARK = re.compile(r"⟦([^⟧]*)⟧")
_DAY = re.compile(r"(\d{4}[-/]\d\d[-/])(\d\d)")
_MONTH_NAME = rf"\b(?:{'|'.join(calendar.month_name[1:])})\b"
_SPELLED = re.compile(rf"(?<![\w.:/-])(\d{{1,2}})(?=(?:st|nd|rd|th|\.)?(?: of)? {_MONTH_NAME})", re.IGNORECASE)
_SPELLED_DAY = re.compile(rf"(?<![\w.:/-])(\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? ({_MONTH_NAME})", re.IGNORECASE)
_CAPITAL = re.compile(r"[^\W\d_a-zß-öø-ÿ][^\W\d_]+(?:['’][^\W\d_]{2,})?")
_NAME = re.compile(rf"{_CAPITAL.pattern}(?:[ -]{_CAPITAL.pattern})*")
_QUOTED = re.compile(r"(?<!\w)['\"“„‘]([^'\"“”„‘’]{2,})['\"”“’](?!\w)")
_FORMS = {
    "quoted": _QUOTED,
    "day": re.compile(rf"{_DAY.pattern}|{_SPELLED_DAY.pattern}", re.IGNORECASE),
    "month": re.compile(_MONTH_NAME, re.IGNORECASE),
    "time": re.compile(r"\b\d{1,2}:\d\d\b"),
    "address": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
}
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+")
_NUMBERED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d|[\w@:/-]*\d[\w@:/-]*(?:[.,@]\w+)*")


def is_choice(name: str, text: str) -> bool:
    """Whether a value of a parameter names a choice, as a fixed list would have it, and nothing of somebody's."""
    free = shapes.of_somebody.search(name) or shapes.free.search(name) or identifies(name)
    return not free and shapes.choice.fullmatch(text) is not None


class Imitation:
    """Values in the form of others, the same for the same one."""

    def __init__(self, dates: Iterable[str], real: Iterable[str], *, own: bool) -> None:
        days = [int(found[2]) for text in dates for found in _DAY.finditer(text)]
        shifts = [shift for shift in (3, -3, 2, -2, 1, -1) if all(0 < day + shift < 29 for day in days)]
        self._shift = shifts[0] if days and shifts and not own else 0
        self._days = {str(day) for day in days}
        self._words: dict[str, str] = {}
        self._own = own
        self._real = {text.casefold() for text in real}
        """What nothing that is made up may be."""

    def of(self, value: Any, name: str, *, secret: bool) -> Any:
        """Another value of the same form; of a ``secret`` one no word stays."""
        if self._own:
            return redacted(value) if isinstance(value, str) else value
        if isinstance(value, str) and shapes.dated.fullmatch(value):
            return _DAY.sub(lambda found: f"{found[1]}{int(found[2]) + self._shift:02d}", value)
        # A small number and a few plain words are nobody's, wherever they stand.
        plain = not isinstance(value, str) or (not self._all_of(name, secret) and shapes.plain_text.fullmatch(value))
        made = (self._made(value, name, str(attempt), secret=secret) for attempt in range(MOST_TRIES))
        free = (item for item in made if written(item).casefold() not in self._real)
        return value if plain and isinstance(value, str) else next(free, value if plain else "example")

    def _all_of(self, name: str, secret: bool) -> bool:
        return secret or identifies(name) or shapes.of_somebody.search(name) is not None

    def _made(self, value: Any, name: str, salt: str, *, secret: bool) -> Any:
        if isinstance(value, int | float):
            return type(value)(self._digits(written(value), salt))
        if "@" in value:
            return f"{self._word(value, listed.first)}@example.org"
        if len(value.split()) > 4:
            return " ".join(sorted(listed.said)[int(digest(value)[:8], 16) % len(listed.said)].split("_"))
        everything = self._all_of(name, secret)
        names = iter((listed.first, *[listed.last] * len(value)))
        pattern = r"[^\W\d_]{4,}" if any(map(str.isdigit, value)) else r"[^\W\d_]+" if everything else _CAPITAL.pattern
        return self._digits(re.sub(pattern, lambda part: self._word(part[0], next(names)), value), salt)

    def request(self, text: str) -> str:
        """A request, with the days of dates that were reckoned from its words shifted as these are."""
        shifted: Callable[[re.Match[str]], str] = lambda found: (  # noqa: E731
            str(int(found[1]) + self._shift) if found[1] in self._days else found[1]
        )
        return _SPELLED.sub(shifted, text)

    def _digits(self, text: str, salt: str) -> str:
        drawn = int(digest("digits", text, salt)[:8], 16)
        return re.sub(r"\d", lambda digit: str((int(digit[0]) + drawn // (1 + digit.start())) % 9 + 1), text)

    def _word(self, word: str, among: frozenset[str]) -> str:
        if word not in self._words:
            every = sorted(among)
            free = [item for item in every if item not in self._words.values() and item not in " ".join(self._real)]
            self._words[word] = (free or every)[int(digest(word)[:8], 16) % len(free or every)]
        made = self._words[word]
        return made.capitalize() if word[0].isupper() else made


def worked(
    request: str,
    arguments: Sequence[Mapping[str, Any]],
    shown: Demonstration,
    names: Mapping[str, str],
    *,
    personal: Callable[[str], str],
    own: bool,
) -> WorkedExample:
    """An example of a run: its request and the arguments of its calls, which ``shown`` has without values.

    ``names`` are the placeholders of its values; ``personal`` leaves out of a text what else may be somebody's.
    """
    texts = [value for value in names if shapes.dated.fullmatch(value)]
    days = set(_SPELLED.findall(request))
    dates = [
        text for text in texts if stands_in(request, text) or any(str(int(d)) in days for _, d in _DAY.findall(text))
    ]
    imitation, made, private = Imitation(dates, names, own=own), dict[str, Any](), list[str]()
    for given, call in zip(arguments, shown.calls, strict=False):
        for name, value in given.items():
            from_result = isinstance(call.sources.get(name), ResultField)
            for _, leaf in leaves(value):
                key = written(leaf)
                if key not in names or key in made:
                    continue
                chosen = isinstance(leaf, str) and not from_result and is_choice(name, leaf)
                kept = chosen or (key in texts and key not in dates)
                made[key] = leaf if kept else imitation.of(leaf, name, secret=from_result)
                if not kept and key not in texts and len(key) > 2:  # a day may be right for the next request, too
                    private.append(written(made[key]))
    text, marks = request, dict[str, str]()
    for key in sorted(filter(None, made), key=len, reverse=True):
        stands = re.compile(rf"(?<!\w){re.escape(key)}(?!\w)(?![^⟦]*⟧)", re.IGNORECASE)
        if (found_at := stands.search(text)) is not None:
            mark, kept = f"⟦v{len(marks)}⟧", written(made[key]) == key
            marks[mark] = found_at[0] if kept else written(made[key])
            text = stands.sub(mark, text)
    text = text if own else imitation.request(personal(text))
    text = _MARK.sub(lambda mark: marks.get(mark[0]) or ("Robin" if mark[1] == "name" else "4711"), text)
    calls = [_replaced(given, made) for given in arguments]
    return WorkedExample(request=text, calls=tuple(calls[: len(shown.calls)]), values=tuple(private))


def _replaced(value: Any, made: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(item, made) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_replaced(item, made) for item in value]
    return value if value is None or isinstance(value, bool) else made.get(written(value), value)


def nearest(examples: Sequence[WorkedExample], request: str) -> WorkedExample | None:
    """The example whose request shares most words with this one; of several the latest."""
    asked = set(terms(request))

    def shared(example: WorkedExample) -> float:
        said = set(terms(example.request))
        return len(asked & said) / (len(asked | said) or 1)

    return max(reversed(examples), key=shared, default=None)


def forms_in(text: str) -> Counter[str]:
    """Which forms of values a text names, and how many of each. A single word with a capital may be no name: half."""
    counted = Counter[str]()
    for form, pattern in _FORMS.items():
        text, times = pattern.subn(" ", text)
        counted[form] = 2 * times
    for name in _names(text, 0):
        counted["name"] += min(2, len(name.split()))
    for number in re.findall(r"\b\d+\b", text):
        counted[f"{min(3, len(number))} digits"] += 2
    return counted


def forms_alike(examples: Iterable[WorkedExample], request: str) -> float | None:
    """How much of what a request names has the forms of an example's values: 0 to 1; None without an example.

    In other words people still name the same things: a guest, two days and a kind of room.
    """
    asked = forms_in(request)
    each = [(asked & own, asked | own) for own in (forms_in(example.request) for example in examples)]
    return max((both.total() / either.total() if either else 1.0 for both, either in each), default=None)


def choices_of(examples: Sequence[WorkedExample], at: int, name: str) -> list[str]:
    """The choices that examples made for an argument of one call, the latest first."""
    return list(_choices(examples, at, name))


def _choices(examples: Sequence[WorkedExample], at: int, name: str) -> Counter[str]:
    seen = (example.calls[at].get(name) for example in reversed(examples) if at < len(example.calls))
    return Counter(value for value in seen if isinstance(value, str) and is_choice(name, value))


def all_choices(examples: Sequence[WorkedExample], at: int, name: str) -> tuple[str, ...]:
    """The same where there are hardly others: each was made more than once. Else none: a list would mislead."""
    counted = _choices(examples, at, name)
    return tuple(counted) if min(counted.values(), default=0) > 1 else ()


def is_day(examples: Sequence[WorkedExample], at: int, name: str) -> bool:
    """Whether an argument of one call is a day: whoever makes the call can read that out of a request."""
    seen = [written(example.calls[at].get(name)) for example in examples if at < len(example.calls)]
    return bool(seen) and all(_DAY.fullmatch(text) for text in seen)


def as_choice(value: str, choices: Sequence[str]) -> str:
    """What a request says as a choice is written: like one that is known, or in capitals as all of these are."""
    if (near := nearest_choice(value, choices)) is not None:
        return near
    capital = bool(choices) and all(choice[:1].isupper() for choice in choices)
    return value[:1].upper() + value[1:] if capital and value.islower() else value


def choice_said(request: str, choices: Iterable[str]) -> str | None:
    """The one of several choices that a request says, in whatever capitals; None where it says none, or several."""
    said = [choice for choice in choices if stands_in(request, choice)]
    longest = [choice for choice in said if not any(choice != other and stands_in(other, choice) for other in said)]
    return longest[0] if len(longest) == 1 else None


def values_said(
    shown: Demonstration, request: str, choices: Sequence[Mapping[str, Sequence[str]]]
) -> tuple[list[dict[str, Any]], list[dict[str, tuple[Any, ...]]], bool]:
    """By call, what a request says in the place of the examples' values; what may stand there, where it says several
    of that form; and whether nothing else in it looks like a value.

    A choice is told by its own words, or by words that only examples with that choice have in common with the request.
    Anything else is told by its form, where the request has exactly as many values of that form as the examples.
    """
    values, several = [dict[str, Any]() for _ in shown.calls], [dict[str, tuple[Any, ...]]() for _ in shown.calls]
    wanted: dict[tuple[str, ...], dict[str, list[tuple[int, str, WorkedExample]]]] = defaultdict(dict)
    chosen: dict[str, list[tuple[int, str]]] = defaultdict(list)
    rest = request
    for at, call in enumerate(shown.calls):
        for name, source in call.sources.items():
            if isinstance(source, ResultField):
                continue
            known = choices[at].get(name, ())
            if (choice := choice_said(request, known)) is not None:
                values[at][name] = choice
                chosen[choice].append((at, name))
                continue
            implied = _reckoned(shown.examples, at, name, request) or _associated(shown.examples, at, name, request)
            if implied is not None:
                values[at][name] = implied
            if implied is not None or known:
                continue
            for example in shown.examples:
                value = example.calls[at].get(name) if at < len(example.calls) else None
                if value is not None and (form := _form(value, example.request)) is not None:
                    wanted[form].setdefault(written(call.arguments.get(name)), []).append((at, name, example))
                    break
    for places in chosen.values():
        for at, name in places if _differ(shown.examples, places) else ():
            del values[at][name]  # one word cannot be said to be both
    for form in sorted(wanted):
        candidates, asked_for = _candidates(form, rest), wanted[form]
        # Of two names nobody can say which is whose; two days follow one another.
        if len(candidates) != len(asked_for) or (len(asked_for) > 1 and form[0] != "1date"):
            for at, name, _ in (place for held in asked_for.values() for place in held):
                several[at][name] = tuple(value for _, value in candidates)
            continue
        in_order = sorted(asked_for.values(), key=lambda held: written(held[0][2].calls[held[0][0]][held[0][1]]))
        for held, (text, value) in zip(in_order, sorted(candidates, key=lambda item: str(item[1])), strict=True):
            rest = rest.replace(text, " ", 1)
            for at, name, _ in held:
                values[at][name] = value
    if len(days := _SPELLED_DAY.findall(rest)) in {len(_SPELLED_DAY.findall(item.request)) for item in shown.examples}:
        rest = _SPELLED_DAY.sub(" ", rest) if days else rest  # as many as in practice: they were reckoned from
    left = [item for form in ("0quoted", "2shape", "4name") for item in _candidates((form, ""), rest)]
    return values, several, not left


def _differ(examples: Sequence[WorkedExample], places: Sequence[tuple[int, str]]) -> bool:
    """Whether some example has different values at these places."""
    held = ([example.calls[at].get(name) for at, name in places if at < len(example.calls)] for example in examples)
    return any(len(set(map(written, values))) > 1 for values in held)


def _associated(examples: Sequence[WorkedExample], at: int, name: str, request: str) -> str | None:
    """What words lead to: those that every example with a value has in its request, and none with another value."""
    by_value: dict[str, set[str]] = {}
    for example in examples:
        if at >= len(example.calls) or not isinstance(value := example.calls[at].get(name), str):
            continue
        if value in example.values or stands_in(example.request, value):
            return None  # it is said, not meant
        others = (written(leaf) for call in example.calls for _, leaf in leaves(call) if leaf != value)
        said = set(terms(example.request)).difference(*(terms(text) for text in others))
        by_value[value] = by_value.get(value, said) & said
    asked, fitting = set(terms(request)), list[str]()
    for value, own in by_value.items():
        elsewhere = set[str]().union(*(held for other, held in by_value.items() if other != value))
        fitting += [value] if len(by_value) > 1 and (own - elsewhere) & asked else []
    return fitting[0] if len(fitting) == 1 else None


def _reckoned(examples: Sequence[WorkedExample], at: int, name: str, request: str) -> str | None:
    """The day that a request names, as all examples reckoned theirs: as a day, or as the first or last of a month."""
    values = [
        (example.request, written(example.calls[at].get(name))) for example in examples if at < len(example.calls)
    ]
    if not values or not all(_DAY.fullmatch(value) for _, value in values):
        return None
    rules = set.intersection(
        *({rule for rule, day in _named_days(text, value[:4]) if day == value} for text, value in values)
    )
    named = dict(_named_days(request, values[-1][1][:4]))
    counts = {len(_named_days(text, "")) for text, _ in values} | {len(named)}
    meant = {named[rule] for rule in rules if rule in named}
    return meant.pop() if len(meant) == 1 and (len(counts) == 1 or not rules & {"1", "2"}) else None


def _named_days(text: str, year: str) -> list[tuple[str, str]]:
    """The days that a text names in words, each under how it does: the first or last of the only month, or by order."""
    named = [(int(match[1]), _month(match[2])) for match in _SPELLED_DAY.finditer(text)]
    days = [(str(at), f"{year}-{month:02d}-{day:02d}") for at, (day, month) in enumerate(named, start=1)]
    if len(months := {_month(match[0]) for match in re.finditer(_MONTH_NAME, text, re.IGNORECASE)}) == 1:
        [month] = months
        last = calendar.monthrange(int(year or 2001), month)[1]
        days += [("first", f"{year}-{month:02d}-01"), ("last", f"{year}-{month:02d}-{last}")]
    return days


def _month(name: str) -> int:
    return [month[:3].casefold() for month in calendar.month_name].index(name[:3].casefold())


def _form(value: Any, request: str) -> tuple[str, ...] | None:
    """How a value of a request is told from its other words; None for what does not stand there."""
    text = written(value)
    if not stands_in(request, text):
        return None
    if any(match[1] == text for match in _QUOTED.finditer(request)):
        return "0quoted", ""
    if _DAY.fullmatch(text):
        return "1date", ""
    if isinstance(value, int | float):
        return "3number", ""
    if any(map(str.isdigit, text)) and (" " not in text or shapes.dated.fullmatch(text)):
        return "2shape", re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", text.casefold()))
    return ("4name", str(len(text.split()))) if _NAME.fullmatch(text) else None


def _candidates(form: tuple[str, ...], text: str) -> list[tuple[str, Any]]:
    """What in a text has a form, in its order, each with its value."""
    match form:
        case ("0quoted", _):
            return [(match[0], match[1].strip()) for match in _QUOTED.finditer(text)]
        case ("1date", _):
            return [(match[0], match[0]) for match in _DAY.finditer(text)]
        case ("3number", _):
            numbers = (match[0] for match in re.finditer(r"(?<![\w:/.-])\d+(?:\.\d+)?(?![\w:/-])", text))
            return [(number, float(number) if "." in number else int(number)) for number in numbers]
        case ("2shape", wanted):
            marked = [match[0].rstrip(".,:;") for match in _NUMBERED.finditer(text)]
            shape = {item: re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "0", item.casefold())) for item in marked}
            return [(item, item) for item in marked if wanted in ("", shape[item])]
    return [(name, name) for name in _names(text, int(form[1] or 0))]


def _names(text: str, size: int) -> list[str]:
    """Names of so many words in a text; what only begins a sentence is none of one."""
    names = []
    for match in _NAME.finditer(text):
        parts = match[0].split()
        begins = not text[: match.start()].rstrip() or text[: match.start()].rstrip()[-1] in ".!?:-"
        if begins and (len(parts) > (size or 2) or (len(parts) == 1 and size != 1)):
            parts = parts[1:]
        parts = [part for part in parts if part.casefold() not in listed.week]
        if parts and (not size or len(parts) == size):
            names.append(" ".join(parts))
    return list(dict.fromkeys(names))


def worded_as(shown: Demonstration, request: str, said: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a request has the very words of an example, but for the values."""
    asked = _without(request, said)
    return any(asked == _without(example.request, example.calls) for example in shown.examples)


def _without(text: str, calls: Iterable[Mapping[str, Any]]) -> list[str]:
    """A text's words, with marks for the values of calls and for days."""
    values = (written(leaf) for call in calls for _, leaf in leaves(call))
    for value in sorted(filter(None, values), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", " ⟦⟧ ", text, flags=re.IGNORECASE)
    text = re.sub(_MONTH_NAME, " ⟦⟧ ", _SPELLED_DAY.sub(" ⟦⟧ ", text), flags=re.IGNORECASE)
    return re.findall(r"⟦⟧|[^\W_]+|\?", text.casefold())


def asks_for(shown: Demonstration, request: str, tools: Iterable[str], said: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a request in other words asks for the change that a strategy makes.

    It must say so: with all words of the tool's name that makes the change, or another verb of its kind in the place of
    the first; or with a choice that the change is about and a word of the strategy's own requests. Questions ask for
    nothing; what is quoted is no order. It excepts nothing, and has no word of another tool's name, nor one for
    looking, keeping or taking back, that the strategy's own requests have not.
    """
    changing = [at for at, call in enumerate(shown.calls) if call.effect]
    if not changing:
        return True
    text = " ".join(part for part in _SENTENCE.split(_QUOTED.sub(" ", request)) if not _is_question(part))
    spoken, asked = set(words(text)), set(terms(text))
    own_words = set[str]().union(*(words(example.request) for example in shown.examples))
    if (spoken & (listed.otherwise | listed.conditions)) - own_words or not asked:
        return False
    made = [terms(shown.calls[at].tool_name) for at in changing]
    kinds = [next((kind for kind in _KINDS if kind.intersection(name[:1])), frozenset[str]()) for name in made]
    otherwise = frozenset[str]() if _TAKES_BACK in kinds else _TAKES_BACK | (_ALTERS if _MAKES in kinds else set())
    if asked & otherwise - set().union(*map(terms, own_words)):
        return False
    named = " ".join(name for call in shown.calls for name in (call.tool_name, *call.arguments)).replace("_", " ")
    own = {term for word in (*own_words, *words(named)) if len(word) > 2 for term in terms(word)}
    verbs = {name_terms[0] for name in tools if (name_terms := terms(name))}
    if asked & (verbs - own).difference(*made, *kinds):
        return False
    values = [(name, value) for at in changing for name, value in said[at].items() if isinstance(value, str)]
    choices = [value for name, value in values if is_choice(name, value)]
    if any(stands_in(request, value) and not stands_in(text, value) for value in choices):
        return False  # what a question names is asked about
    chosen = {term for value in choices for term in terms(value)}
    shown_values = {term for example in shown.examples for value in example.values for term in terms(value)}
    evidence = asked & own - chosen - shown_values
    said_so = [
        asked.issuperset(name[1:]) and asked & (kind | set(name[:1])) for name, kind in zip(made, kinds, strict=True)
    ]
    return all(said_so) or bool(chosen and evidence)


def asks_to_read(request: str, changing: Iterable[str]) -> bool:
    """Whether a request begins like one to read, or is a question, and has no verb of what these tools change."""
    begun = [terms(name)[:1] for name in changing]
    verbs = {
        verb for name in begun for verb in (*name, *next((kind for kind in _KINDS if kind.intersection(name)), ()))
    }
    reads = _is_question(request) or not (listed.reading | listed.otherwise).isdisjoint(words(request)[:1])
    return reads and verbs.isdisjoint(terms(request))


def _is_question(sentence: str) -> bool:
    begins = words(sentence)[:1]
    return bool(listed.asking.intersection(begins)) or (
        sentence.rstrip().endswith("?") and not listed.polite & set(words(sentence))
    )
