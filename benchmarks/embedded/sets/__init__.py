"""Small sets of tools of different kinds, with requests. Nothing here is ever run.

``devices``, ``money`` and ``files`` are halved like all others. The others, with the shipped task tools as ``plain``,
were written down in one go before anything was tuned on them; two of them are held out as a whole.
"""

from benchmarks.embedded.sets import calendar, contacts, devices, files, helpdesk, money, rooms, shop
from journeyman import ToolSpecification

_MODULES = (devices, money, files, calendar, shop, rooms, contacts, helpdesk)
SETS: dict[str, tuple[ToolSpecification, ...]] = {
    module.__name__.rpartition(".")[2]: tuple(made.specification for made in module.TOOLS) for module in _MODULES
}
FIRST_SENTENCES = ("plain", "calendar", "shop", "rooms", "contacts", "helpdesk")
"""Plain sentences over toolkits of six kinds."""
HELD_OUT = ("contacts", "helpdesk")
