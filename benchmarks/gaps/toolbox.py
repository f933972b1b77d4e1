"""The tools of a researcher, all of them; none is run here."""

from typing import Any

from journeyman.toolkits.research import ResearchTools

_UNUSED: Any = object()
TOOLS = tuple(ResearchTools(memory=_UNUSED, root=".").tools())
