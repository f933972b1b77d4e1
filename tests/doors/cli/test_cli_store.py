"""``journeyman audit`` and ``journeyman db``: tampering is found out, and the schema goes up and down."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.doors.cli.driving import Cli


def test_tampering_with_the_audit_log_is_found_out(cli: Cli, approval: dict[str, Any]) -> None:
    cli("approvals", "approve", approval["id"], "--for-session", "--by", "grace")
    assert cli("audit", "verify").out.startswith("2 rows, the chain holds\nkeyed from row 1 (")
    shown = cli("audit", "list").out
    assert "grant_given" in shown
    assert max(len(row.strip()) for row in shown.splitlines()) <= 80
    assert "digest=" not in shown, "what no person reads is told by --json"
    assert [row["seq"] for row in json.loads(cli("audit", "list", "--after", "1", "--json").out)] == [2]
    with closing(sqlite3.connect("journeyman.db", isolation_level=None)) as database:
        database.execute("UPDATE audit SET actor = 'mallory' WHERE seq = 2")
    ended = cli("audit", "verify")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "journeyman: audit row 2 was changed: its content does not fit its hash\n"


def test_an_anchor_shows_what_the_log_cannot_tell_of_itself(cli: Cli, approval: dict[str, Any]) -> None:
    cli("approvals", "approve", approval["id"], "--for-session", "--by", "grace")
    printed = json.loads(cli("audit", "anchor").out)
    assert sorted(printed) == ["count", "format", "hash", "key_id", "mac", "seq", "time"]
    assert cli("audit", "anchor", "--output", "anchor.json").out.startswith(
        "row 2 is anchored; later: journeyman audit"
    )
    whole = cli("audit", "verify", "--anchor", "anchor.json")
    assert (whole.code, "the anchor fits: rows up to 2" in whole.out) == (0, True)
    with closing(sqlite3.connect("journeyman.db", isolation_level=None)) as database:
        database.execute("DELETE FROM audit WHERE seq = 2")
        database.execute(
            "UPDATE audit_head SET (seq, hash, mac) = (SELECT seq, hash, mac FROM audit ORDER BY seq DESC LIMIT 1)"
        )
    unaware = cli("audit", "verify")
    assert (unaware.code, "without an anchor" in unaware.out) == (0, True)
    cut = cli("audit", "verify", "--anchor", "anchor.json")
    assert (cut.code, cut.out) == (1, "")
    assert "audit row 2 is missing: they were there at" in cut.err
    found = json.loads(cli("audit", "verify", "--anchor", "anchor.json", "--json").out)
    assert (found["rows"], len(found["findings"])) == (1, 1)


def test_old_rows_are_forgotten_and_vouched_for(cli: Cli, approval: dict[str, Any]) -> None:
    cli("approvals", "approve", approval["id"], "--for-session", "--by", "grace")
    assert cli("audit", "purge", "--older-than", "1d").out == "no row is older than 1d\n"
    assert cli("audit", "purge", "--older-than", "0s", "--by", "grace").out.startswith("2 rows forgotten; keep a new")
    assert "rows up to 2 were purged; the log vouches for them" in cli("audit", "verify").out
    [row] = json.loads(cli("audit", "list", "--json").out)
    assert (row["seq"], row["kind"], row["actor"]) == (3, "audit_purged", "grace")


@pytest.mark.parametrize("content", [None, "{}", "not JSON"])
def test_what_is_no_anchor_is_refused(cli: Cli, approval: dict[str, Any], content: str | None) -> None:
    if content is not None:
        Path("anchor.json").write_text(content)
    refused = cli("audit", "verify", "--anchor", "anchor.json")
    assert (refused.code, "--anchor 'anchor.json'" in refused.err) == (2, True)


def test_a_log_without_a_key_says_so(cli: Cli, approval: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_AUDIT_KEY", "")
    cli("approvals", "deny", approval["id"], "--by", "grace")
    assert "no row is keyed: a plain hash chain" in cli("audit", "verify").out


def test_lists_are_of_one_principal_before_they_are_cut(cli: Cli, approval: dict[str, Any]) -> None:
    me = approval["principal"]["id"]
    for listing in (("runs", "list"), ("approvals", "list"), ("approvals", "list", "--all")):
        assert len(json.loads(cli(*listing, "--principal", me, "--json").out)) == 1
        assert json.loads(cli(*listing, "--principal", "somebody else", "--json").out) == []
    assert json.loads(cli("gaps", "list", "--principal", me, "--json").out) == []
    cli("approvals", "deny", approval["id"], "--by", "grace")
    assert len(json.loads(cli("audit", "list", "--principal", "grace", "--kind", "approval_denied", "--json").out)) == 1
    assert json.loads(cli("audit", "list", "--principal", me, "--kind", "approval_denied", "--json").out) == []


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
    for wrong in ("99", "-1", "two", "1.5"):
        refused = cli("db", "downgrade", wrong, "--yes")
        assert refused.code == 2
        assert f"schema version 2 and cannot go back to {wrong!r}; give a number from 0 to 2" in refused.err
    assert cli("db", "upgrade").out == f"schema version {latest}, was 2\n"
