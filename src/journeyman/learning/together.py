"""Two demonstrations of one strategy as one: what both show, and no more than that."""

from __future__ import annotations

from journeyman.core.playbook import DemonstratedCall, Demonstration, placeholder
from journeyman.learning.alignment import aligned, generalised

MOST_WORDINGS = 6


def together(kept: Demonstration, other: Demonstration) -> Demonstration:
    """A demonstration with what another run of the same strategy adds to it, or takes back.

    A constant that was another one there is none, and which row of a result a value came from is known only where they
    agree. Another way to ask for the same is kept beside the first, or one wording for both.
    """
    if [call.tool_name for call in kept.calls] != [call.tool_name for call in other.calls]:
        return kept
    calls = tuple(_both(mine, theirs) for mine, theirs in zip(kept.calls, other.calls, strict=True))
    kept = kept.model_copy(update={"calls": calls})
    same = all(
        mine.arguments.get(name) == value or mine.sources.get(name) == "composed"
        for mine, theirs in zip(calls, other.calls, strict=True)
        for name, value in theirs.arguments.items()
    )
    return _worded(kept, other.request) if same else kept


def _both(mine: DemonstratedCall, theirs: DemonstratedCall) -> DemonstratedCall:
    arguments, sources = dict(mine.arguments), dict(mine.sources)
    for name, source in mine.sources.items():
        if source == "constant" and theirs.arguments.get(name) != arguments.get(name):
            arguments[name], sources[name] = placeholder(name), "composed"
    places = dict(mine.places)
    for name, place in theirs.places.items():
        known = places.get(name, "only")
        places[name] = place if known == "only" else known if place in (known, "only") else "other"
    return mine.model_copy(update={"arguments": arguments, "sources": sources, "places": places})


def _worded(kept: Demonstration, request: str) -> Demonstration:
    wordings = [kept.request, *kept.wordings]
    if any((alike := aligned(text, request)) is not None and alike.exact for text in wordings):
        return kept
    for at, text in enumerate(wordings):
        if (both := generalised(text, request)) is not None:
            wordings[at] = both
            break
    else:
        wordings = [*wordings, request][:MOST_WORDINGS]
    return kept.model_copy(update={"request": wordings[0], "wordings": tuple(wordings[1:])})
