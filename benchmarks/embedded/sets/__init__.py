"""Small sets of tools of different kinds, with requests. Nothing here is ever run.

``devices``, ``money`` and ``files`` are halved like all others. The next five, with the shipped task tools as
``plain``, were written down in one go before anything was tuned on them. ``DRAWN`` are public ones, see
``public.licences.md`` and ``benchmarks.embedded.public``.
"""

import json
from pathlib import Path

from benchmarks.embedded.sets import calendar, contacts, devices, files, helpdesk, money, rooms, shop
from journeyman import ToolSpecification

_MODULES = (devices, money, files, calendar, shop, rooms, contacts, helpdesk)
HELD_OUT = ("banking", "cooking", "office", "driving")
"""``outings``, ``wishes`` and ``voice`` were, until they had been looked at."""
DRAWN = ("trips", "outings", "wishes", "voice", *HELD_OUT)


def read_tools(path: Path) -> tuple[ToolSpecification, ...]:
    return tuple(ToolSpecification.model_validate(each) for each in json.loads(path.read_text(encoding="utf-8")))


SETS: dict[str, tuple[ToolSpecification, ...]] = {
    module.__name__.rpartition(".")[2]: tuple(made.specification for made in module.TOOLS) for module in _MODULES
} | {kind: read_tools(Path(__file__).parent / f"{kind}.tools.json") for kind in DRAWN}
FIRST_SENTENCES = ("plain", "calendar", "shop", "rooms", "contacts", "helpdesk", *DRAWN)
"""Plain sentences, each over a toolkit of another kind."""
