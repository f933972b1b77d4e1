"""Reasoning traces as files, one ``<task_id>.json`` a run, for people who debug with a text editor.

Two runs of one task, and two tasks whose ids are written alike in a file's name, do not overwrite each other: the
later trace has the run's id in its name, too.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

from journeyman.core.data import LOG_FIELDS
from journeyman.core.events import Event, RunFailed, RunFinished
from journeyman.core.runs import AgentResponse

logger = logging.getLogger("journeyman.traces")


class Traces:
    """A folder of traces. Losing one never harms a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hear(self, event: Event) -> None:
        if not isinstance(event, RunFinished | RunFailed) or event.response is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(event.response)
        except OSError as error:
            logger.warning("a trace was not written: %s", error, extra={LOG_FIELDS: {"run_id": event.run_id}})

    def _write(self, response: AgentResponse) -> None:
        task, run = (re.sub(r"[^\w.\-]", "_", name)[:100] for name in (response.task_id, response.run_id))
        text = response.model_dump_json(indent=2)
        try:
            # One system call decides who gets the name, also among processes; it is the same file on disks that
            # do not tell small letters from capitals.
            with (self._folder / f"{task}.json").open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            (self._folder / f"{task}.{run}.json").write_text(text, encoding="utf-8")

    def purge(self, *, before: float) -> int:
        """Delete traces last written before then; returns how many."""
        old = [path for path in self._folder.glob("*.json") if path.stat().st_mtime < before]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)
