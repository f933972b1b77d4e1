"""The fakes that users of Journeyman need in their own tests: a scripted model, a scripted server, a clock."""

from journeyman.testing.clock import FakeClock
from journeyman.testing.scripted import ScriptedModel, call, say, together
from journeyman.testing.server import ScriptedServer, cut, hang, html, http, raw

__all__ = [
    "FakeClock",
    "ScriptedModel",
    "ScriptedServer",
    "call",
    "cut",
    "hang",
    "html",
    "http",
    "raw",
    "say",
    "together",
]
