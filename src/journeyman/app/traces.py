"""Reasoning traces as files, one ``<task_id>.json`` a run, for people who debug with a text editor."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from journeyman.core.data import LOG_FIELDS
from journeyman.core.events import Event, RunFailed, RunFinished

logger = logging.getLogger("journeyman.traces")


class Traces:
    """A folder of traces. Losing one never harms a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hear(self, event: Event) -> None:
        if not isinstance(event, RunFinished | RunFailed) or event.response is None:
            return
        name = re.sub(r"[^\w.\-]", "_", event.response.task_id)[:200]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / f"{name}.json").write_text(event.response.model_dump_json(indent=2))
        except OSError as error:
            logger.warning("a trace was not written: %s", error, extra={LOG_FIELDS: {"run_id": event.run_id}})

    def purge(self, *, before: float) -> int:
        """Delete traces last written before then; returns how many."""
        old = [path for path in self._folder.glob("*.json") if path.stat().st_mtime < before]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)
