"""What a PostgreSQL server spends: processor time of its processes, commits, bytes of its log, connections, locks."""

import os
import time
from pathlib import Path
from statistics import mean
from typing import Any

import psycopg

TICK = os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, database: Any) -> None:
        self._connection = psycopg.connect(database.get_uri(), autocommit=True)
        self._parent = int(Path(database.pgdata, "postmaster.pid").read_text().split()[0])

    def _asked(self, query: str) -> float:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return float(row[0])

    def figures(self) -> dict[str, float]:
        return {
            "cpu": self._cpu(),
            "commits": self._asked("SELECT sum(xact_commit) FROM pg_stat_database"),
            "wal": self._asked("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"),
        }

    def _cpu(self) -> float:
        """Seconds of all its processes: those that have ended are counted at their parent."""
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(stat.parent.name) == self._parent:
                total += sum(map(int, fields[11:15]))
            elif int(fields[1]) == self._parent:
                total += sum(map(int, fields[11:13]))
        return total / TICK

    def watch(self, seconds: float) -> tuple[float, float]:
        """How many connections there are at most, and how many wait for a lock on average, looked at ten times a
        second."""
        most, waiting, until = 0.0, [0.0], time.monotonic() + seconds
        while time.monotonic() < until:
            most = max(most, self._asked("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"))
            waiting.append(self._asked("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
            time.sleep(0.1)
        return most, mean(waiting)
