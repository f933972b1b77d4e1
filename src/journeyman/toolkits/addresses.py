"""Addresses that tools are told to fetch from, checked before anything is loaded that could fetch."""

from __future__ import annotations

from urllib.parse import urlsplit

from journeyman.core.errors import ConfigurationError
from journeyman.core.sensitive.addresses import host_address, is_metadata, is_public


def check_address(url: str, *, private: bool = False) -> None:
    """Refuse an address whose host spells what must not be fetched. Raises ConfigurationError."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        raise ConfigurationError(f"{url!r} is no address") from None
    address = host_address(host)
    if is_metadata(host) or (address is not None and not private and not is_public(address)):
        raise ConfigurationError(f"{host!r} is no address that a tool may fetch from")
