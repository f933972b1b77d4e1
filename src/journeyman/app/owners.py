"""Who holds a run: a name for an app in this process, and whether another process of this machine is still alive."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path


def new_owner() -> str:
    """Host, process id, when the process started (ids are used again), and a number: a process may hold two apps."""
    return f"{socket.gethostname()}/{os.getpid()}/{_started(os.getpid())}/{os.urandom(4).hex()}"


def dead_owners(owners: Iterable[str]) -> list[str]:
    """Those of the owners that lived on this machine and are gone. Of other machines only their leases can tell."""
    here = socket.gethostname()
    dead = []
    for owner in owners:
        host, pid, started, *_ = *owner.split("/"), "", ""
        if host == here and pid.isdigit() and _started(int(pid)) != started:
            dead.append(owner)
    return dead


def _started(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        if Path("/proc/self").exists():
            return ""
        return _alive(pid)
    # The name in parentheses may hold spaces; a zombie counts as gone.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def _alive(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"
