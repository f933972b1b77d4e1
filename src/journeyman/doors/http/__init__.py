"""The service over HTTP: chat as a stream of events, tasks, tools, approvals, and an OpenAI-compatible door."""

from journeyman.doors.http.auth import AccessTokens as AccessTokens
from journeyman.doors.http.auth import Tokens as Tokens
from journeyman.doors.http.auth import check_binding as check_binding
from journeyman.doors.http.auth import read_tokens as read_tokens
from journeyman.doors.http.connections import ConnectionLimits as ConnectionLimits
from journeyman.doors.http.middleware import ServeOptions as ServeOptions
from journeyman.doors.http.server import create_app as create_app
from journeyman.doors.http.server import serve as serve
from journeyman.doors.http.server import tls_context as tls_context
