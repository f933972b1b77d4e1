"""``journeyman audit`` and ``journeyman db``: tampering is found out, and the schema goes up and down."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from tests.doors.cli.driving import Cli


def test_tampering_with_the_audit_log_is_found_out(cli: Cli, approval: dict[str, Any]) -> None:
    cli("approvals", "approve", approval["id"], "--for-session", "--by", "grace")
    assert cli("audit", "verify").out == "2 rows, the chain holds\n"
    assert "grant_given" in cli("audit", "list").out
    assert [row["seq"] for row in json.loads(cli("audit", "list", "--after", "1", "--json").out)] == [2]
    with sqlite3.connect("journeyman.db") as database:
        database.execute("UPDATE audit SET actor = 'mallory' WHERE seq = 2")
    database.close()
    ended = cli("audit", "verify")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "journeyman: audit row 2 was changed: its content does not fit its hash\n"


def test_the_schema_goes_up_and_down_and_never_loses_anything_unasked(cli: Cli) -> None:
    assert cli("db", "version").code == 2
    assert cli("db", "upgrade").out.endswith(", was 0\n")
    latest = int(cli("db", "version").out.split()[-1])
    assert cli("db", "upgrade").out == f"schema version {latest}, as before\n"
    refused = cli("db", "downgrade", "2")
    assert (refused.code, "say --yes" in refused.err) == (2, True)
    assert cli("db", "version").out == f"schema version {latest}\n"
    assert cli("db", "downgrade", "2", "--yes").out == f"schema version 2, was {latest}\n"
    assert f"this program works with {latest}: journeyman db upgrade" in cli("db", "version").out
    assert cli("db", "downgrade", "9", "--yes").code == 1
    assert cli("db", "upgrade").out == f"schema version {latest}, was 2\n"
