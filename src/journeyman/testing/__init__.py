"""The fakes that users of Journeyman need in their own tests: a scripted model, a scripted server, a clock, crashes."""

from journeyman.testing.clock import FakeClock
from journeyman.testing.crash import CrashPoint, Recovery, crash_and_recover, crash_points, crashing
from journeyman.testing.scripted import ScriptedModel, call, say, together
from journeyman.testing.server import ScriptedServer, cut, hang, html, http, raw

__all__ = ["CrashPoint", "FakeClock", "Recovery", "ScriptedModel", "ScriptedServer", "call", "crash_and_recover"]
__all__ += ["crash_points", "crashing", "cut", "hang", "html", "http", "raw", "say", "together"]
