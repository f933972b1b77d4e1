"""No more test processes use the embedded engine at once than there are processors."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def with_an_engine() -> Iterator[None]:
    """Each engine computes for seconds, on one processor: more of them would keep the other tests waiting."""
    place = Path(tempfile.gettempdir())
    locks = [
        (place / f"journeyman-engine-{os.getuid()}-{n}.lock").open("w")  # closed below
        for n in range(os.cpu_count() or 1)
    ]
    try:
        for lock in locks:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                continue
        else:
            fcntl.flock(locks[os.getpid() % len(locks)], fcntl.LOCK_EX)
        yield
    finally:
        for lock in locks:
            lock.close()
