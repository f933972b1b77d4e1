"""The service over HTTP: chat as a stream of events, tasks, tools, approvals, and an OpenAI-compatible door."""

from journeyman.doors.http.application import create_app
from journeyman.doors.http.auth import Tokens, check_binding, read_tokens
from journeyman.doors.http.limits import DoorLimits
from journeyman.doors.http.server import serve

__all__ = ["DoorLimits", "Tokens", "check_binding", "create_app", "read_tokens", "serve"]
