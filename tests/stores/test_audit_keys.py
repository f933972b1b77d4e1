"""Where the keys of the audit come from."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from journeyman.core.errors import ConfigurationError
from journeyman.stores.audit import VARIABLE, AuditKey, AuditKeys, key_file

KEY, OTHER = "a key of the operator", "an older key of theirs"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


def test_a_user_is_given_a_key_of_their_own_that_nobody_else_reads(home: Path) -> None:
    assert AuditKeys(make_file=True).by_id == {}, "to verify makes none"
    key = AuditKeys(make_file=True).writing
    assert key is not None
    path = home / "state" / "journeyman" / "audit.key"
    assert key_file() == path
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]
    assert AuditKey(path.read_text().strip()).id == key.id
    assert list(AuditKeys(make_file=True).by_id) == [key.id]
    assert AuditKeys().writing is None, "a database of several machines has no use for it"


def test_of_several_processes_that_begin_at_once_all_have_the_same_key() -> None:
    found: list[str] = []

    def begin() -> None:
        key = AuditKeys(make_file=True).writing
        found.append("" if key is None else key.id)

    threads = [threading.Thread(target=begin) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found)), "" in found) == (16, 1, False)


def test_the_variable_goes_first_and_may_hold_older_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = AuditKeys(make_file=True).writing
    assert kept is not None
    monkeypatch.setenv(VARIABLE, f"{KEY}, {OTHER}")
    for make_file in (True, False):
        writing = AuditKeys(make_file=make_file).writing
        assert writing is not None
        assert writing.id == AuditKey(KEY).id
    ids = [AuditKey(KEY).id, AuditKey(OTHER).id]
    assert list(AuditKeys().by_id) == ids
    assert list(AuditKeys(make_file=True).by_id) == [*ids, kept.id], "rows from before the variable stay good"


def test_an_empty_variable_says_that_there_is_to_be_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert AuditKeys(make_file=True).writing is None
    path = key_file()
    assert path is not None
    assert not path.exists()


def test_a_key_that_could_be_guessed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "short")
    with pytest.raises(ConfigurationError, match="JOURNEYMAN_AUDIT_KEY") as refused:
        _ = AuditKeys().writing
    assert "short" not in str(refused.value)


def test_without_a_place_for_it_there_is_no_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    assert AuditKeys(make_file=True).writing is None
    assert "KEY" not in {name for name in os.environ if "AUDIT" in name}
