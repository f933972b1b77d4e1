"""Files that somebody shares in a message: fetched with the bot's token, from Slack and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from journeyman.core.content import MEDIUM_BYTES, MESSAGE_MEDIA, REQUEST_MEDIA_BYTES, Medium
from journeyman.core.data import one_line, read_at_most
from journeyman.core.errors import InvalidDataError
from journeyman.doors.slack.client import SECONDS
from journeyman.doors.slack.people import Workspace

_HOSTS = ("slack.com", "slack-gov.com")
TOO_MANY = f"I take at most {MESSAGE_MEDIA} files and {REQUEST_MEDIA_BYTES // 1_000_000} MB with a message"


async def shared_files(event: Mapping[str, Any], workspace: Workspace) -> tuple[list[Medium], list[str]]:
    """The files of a message that can be handed on, and of each other one why it cannot, for people."""
    found: list[Medium] = []
    missing: list[str] = []
    shared = [file for file in event.get("files") or () if isinstance(file, Mapping)]
    for file in shared:
        name = str(file.get("name") or "a file")
        try:
            if len(found) == MESSAGE_MEDIA:
                raise ValueError(TOO_MANY)
            medium = await _fetched(file, name, workspace)
            if sum(each.bytes for each in found) + medium.bytes > REQUEST_MEDIA_BYTES:
                raise ValueError(TOO_MANY)
            found.append(medium)
        except InvalidDataError as error:
            missing.append(f"{one_line(name, most=100)}: {error.problems[0][1]}")
        except (ValueError, OSError, TimeoutError, aiohttp.ClientError) as error:
            missing.append(f"{one_line(name, most=100)}: {error or type(error).__name__}")
    return found, missing[:MESSAGE_MEDIA]


async def _fetched(file: Mapping[str, Any], name: str, workspace: Workspace) -> Medium:
    url = str(file.get("url_private_download") or file.get("url_private") or "")
    if not _is_slack(url, workspace.client.base_url):
        raise ValueError("Slack does not say where it is kept" if not url else "it is not kept at Slack")
    headers, limit = {"Authorization": f"Bearer {workspace.token}"}, aiohttp.ClientTimeout(total=SECONDS)
    # Nowhere else than there: a redirection would take the token along.
    async with (
        aiohttp.ClientSession(timeout=limit, auto_decompress=False) as session,
        session.get(url, headers=headers, allow_redirects=False) as response,
    ):
        said = str(file.get("mimetype") or "")
        page = response.content_type == "text/html" and said != "text/html"  # to sign in
        if response.status != 200 or page or response.headers.get("Content-Encoding"):
            raise ValueError(f"Slack does not give it to me ({response.status}); do I have the scope files:read?")
        data, _ = await read_at_most(response.content.iter_any(), MEDIUM_BYTES + 1)
    return Medium.from_bytes(data, mime_type=said, name=name)


def _is_slack(url: str, api: str) -> bool:
    """Whether an address is Slack's: by its name over https, or where its API is."""
    try:
        parts, own = urlsplit(url), urlsplit(api)
        if (parts.scheme, parts.hostname, parts.port) == (own.scheme, own.hostname, own.port):
            return parts.username is None
        host = parts.hostname or ""
        known = any(host == name or host.endswith(f".{name}") for name in _HOSTS)
        return parts.scheme == "https" and parts.port in (None, 443) and parts.username is None and known
    except ValueError:
        return False
