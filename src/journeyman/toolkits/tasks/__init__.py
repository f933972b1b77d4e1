"""Tasks and attachments: a service over a store, and the tools that give it to a model."""

from __future__ import annotations

from journeyman.core.protocols import Clock
from journeyman.core.tasks import TaskStore
from journeyman.retrieval.search import HybridIndex
from journeyman.toolkits.tasks.service import TaskService
from journeyman.toolkits.tasks.tools import task_tools
from journeyman.tools.library import ToolLibrary

__all__ = ["TaskService", "builtin", "task_tools"]


def builtin(store: TaskStore, *, clock: Clock | None = None, index: HybridIndex | None = None) -> ToolLibrary:
    """The tasks toolkit over a store, as a library of its own; ``index`` makes its search one by meaning."""
    return ToolLibrary(task_tools(TaskService(store, clock, index=index)))
