"""``app.playbooks``: one playbook for each domain, fed from the journal of ended runs, each run exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from journeyman.core.approvals import Label, LabelSource
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ConfigurationError, JournalConflictError, PlaybookConflictError
from journeyman.core.events import Fact
from journeyman.core.playbook import PlaybookStore
from journeyman.core.policy import Principal
from journeyman.core.protocols import Clock
from journeyman.core.storing import CursorBatch
from journeyman.learning.episodes import Episode, conversations_in, from_facts
from journeyman.learning.forms import LearningSettings
from journeyman.learning.playbook import MOST_TRIES, Draft, Playbook
from journeyman.learning.reflector import Reflector
from journeyman.stores.playbook_files import FilePlaybooks
from journeyman.stores.store import SqlStore

logger = logging.getLogger("journeyman.learning")

CURSOR = "playbooks"
LEASE_SECONDS = 120.0
RUNS_AT_ONCE = 50
MOST_LOOKED_AT = 500
"""Runs among which requests to practise are looked for."""
LEARN_SECONDS = 5.0
"""How long after its end a run is learned from, at most, where the app learns by itself."""
_CHAIN = "Chain of "


class Playbooks:
    """The playbooks of a store, by domain."""

    def __init__(self, store: SqlStore, *, clock: Clock, owner: str, settings: LearningSettings) -> None:
        self._store = store
        self._kept: PlaybookStore = store.playbooks if settings.folder is None else FilePlaybooks(settings.folder)
        self._clock = clock
        self._owner = owner
        self.settings = settings
        self._open: dict[str, Playbook] = {}
        self._learning = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None

    def __getitem__(self, domain: str) -> Playbook:
        if domain not in self._open:
            self._open[domain] = Playbook(
                domain, store=self._kept, settings=self.settings, now=self._clock.time, find_run=self.episode
            )
        return self._open[domain]

    async def domains(self) -> Sequence[str]:
        """Domains that have a playbook."""
        return await self._kept.domains()

    async def episode(self, run_id: str) -> Episode | None:
        """What happened in a stored run, with the labels it has by now; None while it has not ended."""
        labels = await self._store.labels.of(run_id)
        return from_facts(await self._facts(run_id), labels=labels)

    async def to_practise(self, domain: str, *, principal: Principal | None, most: int) -> list[str]:
        """What was asked in a domain, once each: first what went wrong at its latest, then the newest.

        Only requests that stand alone, of runs on nobody's behalf or this principal's.
        """
        wanted: dict[str, bool] = {}
        whose = (None, None if principal is None else principal.id)
        for row in await self._store.runs.list(limit=MOST_LOOKED_AT):
            episode = await self.episode(row.id) if row.principal_id in whose else None
            if episode is None or episode.domain != domain or episode.known or episode.request.startswith(_CHAIN):
                continue
            lesson = Reflector().reflect(episode)
            wanted.setdefault(episode.request, lesson is not None and lesson.good)
        return sorted(wanted, key=wanted.__getitem__)[:most]

    async def learn(self) -> int:
        """Take in every run that has ended since; returns from how many something was learned.

        Any number of processes may call it at once: the cursor gives each run to one of them, and is advanced together
        with what was learned.
        """
        learned = 0
        async with self._learning:
            while batch := await self._store.cursors.take(
                CURSOR, owner=self._owner, lease_seconds=LEASE_SECONDS, limit=RUNS_AT_ONCE
            ):
                learned += await self._take_in(batch)
        return learned

    async def rated(self, run_id: str, label: Label) -> None:
        """A person has rated a run that may have been learned from already."""
        row = await self._store.runs.get(run_id)
        own = row is not None and row.principal_id is not None and label.by == row.principal_id
        for domain in {*self._open, *await self.domains()}:
            playbook = self[domain]
            # What somebody says of their own run activates nothing for others.
            source = LabelSource.JUDGE if own and playbook.settings.shared else label.source
            await playbook.rate(run_id, label.value == "good", source=source)

    async def _take_in(self, batch: CursorBatch) -> int:
        by_domain: dict[str, list[Episode]] = defaultdict(list)
        labels = await self._store.labels.of_runs([row.id for row in batch.runs])
        for row in batch.runs:
            episode = from_facts(await self._facts(row.id), labels=labels.get(row.id, ()))
            if episode is not None and not episode.request.startswith(_CHAIN):
                by_domain[episode.domain].append(episode)
        async with contextlib.AsyncExitStack() as held:
            for domain in sorted(by_domain):
                await held.enter_async_context(self[domain].alone())
            for _ in range(MOST_TRIES):
                drafts = [await self[domain].draft(episodes) for domain, episodes in sorted(by_domain.items())]
                changing = [draft for draft in drafts if draft.change is not None]
                try:
                    versions = await self._commit(changing, batch)
                except PlaybookConflictError:
                    await _undo(changing)
                    continue
                except BaseException:
                    await _undo(changing)
                    raise
                for draft in changing:
                    draft.accept(versions)
                return sum(draft.lessons for draft in drafts)
        raise PlaybookConflictError(
            f"the playbooks were changed by others {MOST_TRIES} times in a row: try again later"
        )

    async def _commit(self, drafts: Sequence[Draft], batch: CursorBatch) -> Mapping[str, int]:
        changes = [draft.change for draft in drafts if draft.change is not None]
        now = self._clock.time()
        if not changes:
            await self._store.cursors.advance(batch)
            return {}
        versions = await self._kept.commit(changes, now=now, batch=batch)
        if self.settings.folder is not None:  # files: they have noted the batch, so that it is not taken in again
            await self._store.cursors.advance(batch)
        return versions

    async def _facts(self, run_id: str) -> list[Fact]:
        return [fact async for fact in self._store.runs.all_facts(run_id)]

    # --- files

    async def learn_file(self, path: Path, *, domain: str, own_values: bool = False) -> int:
        """Learn from a file of conversations in the shape of OpenAI's chat messages."""
        try:
            text = await asyncio.to_thread(path.read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{str(path)!r} cannot be read: {error}") from error
        by_domain: dict[str, list[Episode]] = defaultdict(list)
        for episode in conversations_in(text, name=path.name, domain=domain):
            by_domain[episode.domain].append(episode)
        return sum([await self[name].learn(episodes, own_values=own_values) for name, episodes in by_domain.items()])

    async def export_to(self, folder: Path, *, domain: str | None = None) -> int:
        """Write playbooks as JSON Lines below a folder; returns how many bullets."""
        files, count = FilePlaybooks(folder), 0
        for name in [domain] if domain is not None else await self.domains():
            bullets = await self[name].bullets()
            await Playbook(name, store=files, embedder=None, now=self._clock.time).put(bullets, reason="exported")
            count += len(bullets)
        return count

    async def import_from(self, folder: Path, *, domain: str | None = None) -> int:
        """Read playbooks that lie as JSON Lines below a folder; returns how many bullets."""
        files, count = FilePlaybooks(folder), 0
        domains = [domain] if domain is not None else await files.domains()
        if not domains:
            raise ConfigurationError(f"there is no playbook below {str(folder)!r}: it has no tool-calling/DOMAIN in it")
        for name in domains:
            bullets = (await files.read(name)).bullets
            await self[name].put(bullets, reason=f"imported from {folder.name}")
            count += len(bullets)
        return count

    # --- while an app is open

    def open(self) -> None:
        """Begin to learn from runs as they end."""
        self._work = asyncio.create_task(self._keep_learning())

    async def close(self) -> None:
        """Stop, with what has ended by now taken in."""
        if self._work is None:
            return
        self._work.cancel()
        await asyncio.wait((self._work,))
        self._work = None
        await self._learn_or_log()

    async def _keep_learning(self) -> None:
        while True:
            await asyncio.sleep(LEARN_SECONDS)
            await self._learn_or_log()

    async def _learn_or_log(self) -> None:
        try:
            await self.learn()
        except JournalConflictError:
            pass  # another process has the cursor, and learns
        except Exception:
            # Runs are as good without learning; the cursor keeps the place.
            logger.exception("nothing was learned this time", extra={LOG_FIELDS: {"owner": self._owner}})


async def _undo(drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        await draft.undo()
