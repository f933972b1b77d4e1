"""Addresses in a network that must not be fetched blindly: a cloud's metadata services, and the private ones.

A host is read as the most lenient of programs reads it: one number for four bytes, octal,
hexadecimal, full-width digits, IPv4 inside IPv6, and names that spell an address.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from functools import cache
from urllib.parse import unquote, urlsplit

from journeyman.core.errors import ConfigurationError
from journeyman.core.words import WordLists

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

known = WordLists("journeyman.sensitive", "addresses.txt")

_SPELLED = (".nip.io", ".sslip.io", ".xip.io", ".1u.ms", ".traefik.me")
_DAEMON_PORTS = frozenset({2375, 2376, 2379, 2380, 8200, 8500, 10250, 10255})
"""Where Docker, etcd, Vault, Consul and kubelets listen, which obey or tell whoever asks from inside."""
_LONGEST_URL = 8_192
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
_EMBEDDED = re.compile(r"(?<!\d)(\d{1,3})[.-](\d{1,3})[.-](\d{1,3})[.-](\d{1,3})(?!\d)")


def host_address(host: str) -> Address | None:
    """The address that a host spells, in whatever way; None for a name."""
    host = unicodedata.normalize("NFKC", host).replace("\u3002", ".").strip("[]").rstrip(".").partition("%")[0].lower()
    if ":" in host:
        try:
            return _unwrapped(ipaddress.IPv6Address(host))
        except ValueError:
            return None
    parts = host.split(".")
    if not 1 <= len(parts) <= 4 or not all(_NUMBER.fullmatch(part) and len(part) <= 40 for part in parts):
        return None
    numbers = [int(part, 16) if part[:2] in ("0x", "0X") else int(part, 8 if part[0] == "0" else 10) for part in parts]
    # Too large a number loses its upper bytes, as in programs that do not check.
    *leading, last = numbers
    value = last & ((1 << 8 * (5 - len(parts))) - 1)
    for place, number in enumerate(leading):
        value |= (number & 0xFF) << 8 * (3 - place)
    return ipaddress.IPv4Address(value)


def _unwrapped(address: ipaddress.IPv6Address) -> Address:
    """The IPv4 address inside an IPv6 one: mapped, compatible, 6to4, NAT64."""
    inner = address.ipv4_mapped or address.sixtofour
    if inner is not None:
        return inner
    number = int(address)
    if number >> 32 == 0x64FF9B << 64 or (number >> 32 == 0 and number > 0xFFFF):
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return address


@cache
def _metadata_nets() -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(map(ipaddress.ip_network, known.metadata_nets))


def is_metadata(host: str) -> bool:
    """Whether a host is one of those that hand a machine its credentials."""
    address = host_address(host)
    if address is not None:
        return any(address.version == net.version and address in net for net in _metadata_nets())
    name = host.lower().rstrip(".")
    if name in known.metadata_names:
        return True
    match = _EMBEDDED.search(name) if name.endswith(_SPELLED) else None
    return match is not None and is_metadata(".".join(match.groups()))


def is_public(address: Address | str) -> bool:
    """Whether an address belongs to the public internet, and not to a machine, its network or its cloud."""
    try:
        read = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(read, ipaddress.IPv6Address):
        read = _unwrapped(read)
    return read.is_global and not read.is_multicast and not is_metadata(str(read))


def url_is_internal(url: str) -> bool:
    """Whether an address leads to a metadata service, or to a daemon that trusts its network."""
    url = url[:_LONGEST_URL]
    try:
        parts = urlsplit(unquote(url))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        # A port or bracket that cannot be read says nothing about where a lenient program would go.
        host, port = url.partition("://")[2].partition("/")[0].rpartition("@")[2], None
    if is_metadata(host):
        return True
    if port not in _DAEMON_PORTS:
        return False
    address = host_address(host)
    return host == "localhost" or (address is not None and not is_public(str(address)))


def mentions_metadata(text: str) -> bool:
    """Whether a text without a scheme names a metadata service."""
    return any(name in text for name in known.mentioned)


def check_address(url: str, *, private: bool = False) -> None:
    """Refuse an address whose host spells what a tool must not fetch. Raises ConfigurationError."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        raise ConfigurationError(f"{url!r} is no address") from None
    address = host_address(host)
    if is_metadata(host) or (address is not None and not private and not is_public(address)):
        raise ConfigurationError(f"{host!r} is no address that a tool may fetch from")
