"""The service over HTTP: chat as a stream of events, tasks, tools, approvals, and an OpenAI-compatible door."""

from journeyman.doors.http.auth import Tokens, check_binding, read_tokens
from journeyman.doors.http.connections import ConnectionLimits
from journeyman.doors.http.middleware import ServeOptions
from journeyman.doors.http.oauth import AccessTokens
from journeyman.doors.http.server import create_app, serve, tls_context

__all__ = [
    "AccessTokens",
    "ConnectionLimits",
    "ServeOptions",
    "Tokens",
    "check_binding",
    "create_app",
    "read_tokens",
    "serve",
    "tls_context",
]
