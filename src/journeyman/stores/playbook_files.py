"""Playbooks as folders of JSON Lines: ``<root>/tool-calling/<domain>/strategies.jsonl``, one bullet to a line.

Any other ``*.jsonl`` of a domain's folder is read as well, and never written. Beside them lie ``index.json`` (what an
index keeps of each bullet, and the format's version), ``changes.log`` (every change, for history and rollback) and
``.lock``. A change is one line at the end of the log, written under the lock and synced; the readable file follows by
atomic replacement. So a process may die anywhere: a line that was not finished is not there.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from journeyman.core.data import unchecked
from journeyman.core.errors import ConfigurationError, PlaybookConflictError
from journeyman.core.playbook import PlaybookBullet, PlaybookChange, PlaybookState, PlaybookVersion, read_bullet
from journeyman.core.storing import CursorBatch

P = ParamSpec("P")
T = TypeVar("T")

LAYOUT = "tool-calling"
FORMAT = 1
STRATEGIES, INDEX, LOG, LOCK = "strategies.jsonl", "index.json", "changes.log", ".lock"
SMALL = 1_000
"""Bullets up to which the readable file is written with every change; beyond, once in a while."""
_NAME = re.compile(r"[\w.-]{1,100}")


@dataclass(slots=True)
class _Seen:
    """What this process has read of a domain's folder."""

    bullets: dict[str, PlaybookBullet] = field(default_factory=dict)
    changed_at: dict[str, int] = field(default_factory=dict)
    """The version in which each bullet, or its removal, was written last."""
    version: int = 0
    offset: int = 0
    """How far into the log."""
    cursors: dict[str, int] = field(default_factory=dict)
    written: int = 0
    """The version that the readable file is of."""
    others: tuple[tuple[str, int, int], ...] = ()
    """The files of others that were read: name, size, time."""


def _in_thread(work: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    async def method(*values: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(work, *values, **named)

    return wraps(work)(method)


class FilePlaybooks:
    """Playbooks below a folder. Any number of processes may write them at once."""

    def __init__(self, root: Path | str) -> None:
        self._root = Path(root)
        self._seen: dict[str, _Seen] = {}

    async def domains(self) -> Sequence[str]:
        folder = self._root / LAYOUT
        return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []

    def _folder(self, domain: str) -> Path:
        if not _NAME.fullmatch(domain) or domain.startswith("."):
            raise ConfigurationError(
                f"domain {domain!r} cannot be the name of a folder: use letters, digits, '_', '-' and '.'"
            )
        return self._root / LAYOUT / domain

    @_in_thread
    def read(self, domain: str, *, after: int = 0) -> PlaybookState:
        folder = self._folder(domain)
        if not folder.is_dir():
            return PlaybookState()
        with _locked(folder):
            seen = self._caught_up(domain, folder)
        fresh = [key for key, at in seen.changed_at.items() if at > after or after == 0]
        fields = {
            "version": seen.version,
            "bullets": tuple(seen.bullets[key] for key in fresh if key in seen.bullets),
            "removed": tuple(key for key in fresh if key not in seen.bullets),
        }
        return unchecked(PlaybookState, fields)

    @_in_thread
    def commit(
        self, changes: Sequence[PlaybookChange], *, now: float, batch: CursorBatch | None = None
    ) -> Mapping[str, int]:
        """Write changes, one domain after the other. A batch that a domain has taken in before is not written again."""
        versions: dict[str, int] = {}
        for change in changes:
            folder = self._folder(change.domain)
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder):
                seen = self._caught_up(change.domain, folder)
                if batch is not None and seen.cursors.get(batch.name, 0) >= batch.up_to:
                    versions[change.domain] = seen.version
                    continue
                if seen.version != change.expected:
                    raise PlaybookConflictError(
                        f"playbook {change.domain!r} is at version {seen.version}, not {change.expected}: read it again"
                    )
                if not (folder / LOG).exists() and (folder / STRATEGIES).exists():
                    _append(folder / LOG, _line(0, now, "as it was found", tuple(seen.bullets.values())))
                line = _line(change.expected + 1, now, change.reason, change.bullets, change.removed)
                if batch is not None:
                    line["cursor"] = {batch.name: batch.up_to}
                _append(folder / LOG, line)
                seen = self._caught_up(change.domain, folder)
                if len(seen.bullets) <= SMALL or seen.version - seen.written > len(seen.bullets) // 8:
                    self._write_readable(folder, seen)
                versions[change.domain] = seen.version
        return versions

    @_in_thread
    def at(self, domain: str, version: int) -> PlaybookState:
        seen = _Seen()
        folder = self._folder(domain)
        with _locked(folder):
            latest = self._caught_up(domain, folder).version
            if not 0 <= version <= latest:
                raise ConfigurationError(f"playbook {domain!r} has no version {version}: it is at version {latest}")
            _load_others(folder, domain, seen)
            _replay(folder / LOG, seen, up_to=version)
        return unchecked(PlaybookState, {"version": version, "bullets": tuple(seen.bullets.values()), "removed": ()})

    @_in_thread
    def history(self, domain: str, *, limit: int = 50) -> Sequence[PlaybookVersion]:
        folder = self._folder(domain)
        if not (folder / LOG).exists():
            return []
        with _locked(folder):
            _mend(folder / LOG)
            with (folder / LOG).open("rb") as log:
                lines = [json.loads(line) for line in log]
        return [
            PlaybookVersion(
                version=line["version"],
                at=line["at"],
                reason=line["reason"],
                changed=len(line["put"]),
                removed=len(line["removed"]),
            )
            for line in reversed(lines)
            if line["version"]
        ][:limit]

    def _caught_up(self, domain: str, folder: Path) -> _Seen:
        """What the folder holds by now. Called under its lock."""
        _mend(folder / LOG)
        seen = self._seen.get(domain)
        if seen is None or seen.others != _others(folder):
            # A file of somebody else has come or changed: begin again, its bullets may be any.
            seen = self._seen[domain] = _Seen()
            _load_others(folder, domain, seen)
        _replay(folder / LOG, seen)
        return seen

    def _write_readable(self, folder: Path, seen: _Seen) -> None:
        bullets = list(seen.bullets.values())
        lines = "".join(json.dumps(item.model_dump(mode="json"), ensure_ascii=False) + "\n" for item in bullets)
        _replace(folder / STRATEGIES, lines)
        index = {
            "format": FORMAT,
            "version": seen.version,
            "bullets": {item.id: item.index_metadata for item in bullets},
        }
        _replace(folder / INDEX, json.dumps(index, ensure_ascii=False, indent=1) + "\n")
        seen.written = seen.version


def _others(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """The files that others have put into a folder; ours counts as one while there is no log beside it."""
    ours = {STRATEGIES} if (folder / LOG).exists() else set()
    files = [(path, path.stat()) for path in sorted(folder.glob("*.jsonl")) if path.name not in ours]
    return tuple((path.name, stat.st_size, stat.st_mtime_ns) for path, stat in files)


def _load_others(folder: Path, domain: str, seen: _Seen) -> None:
    seen.others = _others(folder)
    for name, _, _ in seen.others:
        with (folder / name).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    bullet = read_bullet(line, domain=domain)
                except ValueError as error:
                    where = folder / name
                    raise ConfigurationError(f"{where}, line {number}: not a bullet: {error}") from None
                seen.bullets[bullet.id] = bullet
                seen.changed_at[bullet.id] = 0


def _replay(log: Path, seen: _Seen, *, up_to: int | None = None) -> None:
    if not log.exists():
        return
    with log.open("rb") as lines:
        lines.seek(seen.offset)
        for raw in lines:
            line = json.loads(raw)
            if up_to is not None and line["version"] > up_to:
                return
            for data in line["put"]:
                bullet = read_bullet(data)
                seen.bullets[bullet.id] = bullet
                seen.changed_at[bullet.id] = line["version"]
            for key in line["removed"]:
                seen.bullets.pop(key, None)
                seen.changed_at[key] = line["version"]
            seen.cursors.update(line.get("cursor", {}))
            seen.version = line["version"]
            seen.offset += len(raw)


def _line(
    version: int, now: float, reason: str, bullets: Sequence[PlaybookBullet], removed: Sequence[str] = ()
) -> dict[str, Any]:
    put = [bullet.model_dump(mode="json") for bullet in bullets]
    return {"version": version, "at": now, "reason": reason, "put": put, "removed": list(removed)}


def _append(log: Path, line: Mapping[str, Any]) -> None:
    with log.open("ab") as end:
        end.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        end.flush()
        os.fsync(end.fileno())


def _mend(log: Path) -> None:
    """Cut off a line that a process did not live to finish."""
    if not log.exists():
        return
    with log.open("rb+") as lines:
        lines.seek(max(0, lines.seek(0, os.SEEK_END) - 1))
        if lines.read(1) not in (b"", b"\n"):
            lines.seek(0)
            lines.truncate(lines.read().rfind(b"\n") + 1)


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


@contextmanager
def _locked(folder: Path) -> Iterator[IO[bytes]]:
    """Alone with a folder, among all processes and threads of this machine."""
    try:
        import fcntl
    except ImportError:
        raise ConfigurationError("playbooks as files need a system with file locks: use a database here") from None
    if not folder.is_dir():
        raise ConfigurationError(f"there is no playbook in {folder}")
    with (folder / LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
