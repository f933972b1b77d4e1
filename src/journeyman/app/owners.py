"""Who holds a run: a name for an app in this process, and whether another process is still alive.

What a process knows of others by their ids holds for its own kernel and its own PID namespace: two containers may have
the same host name and the same process ids. Of all others only their leases and their silence can tell.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

Fate: TypeAlias = Literal["dead", "alive", "unknown"]


def new_owner() -> str:
    """Host, process id, when the process started (ids are used again), a number (a process may hold two apps), and
    where all that holds: the boot of the kernel and the PID namespace."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_started(pid)}/{os.urandom(4).hex()}/{_boot()}/{_namespace()}"


def fate(owner: str, *, one_machine: bool = False) -> Fate:
    """Whether a process lives. ``one_machine``: whoever works on this store shares our kernel, if it is still up."""
    host, pid, started, _, boot, namespace, *_ = *owner.split("/"), *[""] * 6
    if not boot or not _boot():
        return "unknown"
    if boot != _boot():
        return "dead" if one_machine else "unknown"
    if host != socket.gethostname() or not namespace or namespace != _namespace() or not pid.isdigit():
        return "unknown"
    return "alive" if _started(int(pid)) == started else "dead"


def in_words(owner: str) -> str:
    """An owner for people."""
    host, pid, *_ = *owner.split("/"), ""
    return f"process {pid} on {host}"


def is_stopped(owner: str) -> bool:
    """Whether a process is there, and was stopped by a signal or a debugger."""
    return fate(owner) == "alive" and _stat(int(owner.split("/")[1]))[:1] in (["T"], ["t"])


def dead_owners(owners: Iterable[str], *, one_machine: bool = False) -> list[str]:
    """Those of the owners that are known to be gone."""
    return [owner for owner in owners if fate(owner, one_machine=one_machine) == "dead"]


@cache
def _boot() -> str:
    """This boot of this kernel; empty where nothing tells."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "" if Path("/proc/self").exists() else socket.gethostname()


def _namespace() -> str:
    """In which process ids mean something: the number of the PID namespace; empty where we cannot look at it."""
    if not Path("/proc/self").exists():
        return "none"
    try:
        # A namespace may have been made without a /proc of its own: then the one there is shows other processes.
        seen = os.readlink("/proc/self") == str(os.getpid())
        return os.readlink("/proc/self/ns/pid").strip("pid:[]") if seen else ""
    except OSError:
        return ""


def _started(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty when there is no such process."""
    if fields := _stat(pid):
        return "" if fields[0] in ("Z", "X") else fields[19]  # a zombie counts as gone
    return "" if Path("/proc/self").exists() else _alive(pid)


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; nothing where it says nothing."""
    try:
        # The name in parentheses may hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _alive(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"
