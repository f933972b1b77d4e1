"""What doors need of durable runs. Not in ``journeyman.app``: whoever only calls ``run()`` loads no store."""

from journeyman.app.assistant import task_assistant, task_library
from journeyman.app.handles import Handle, Session
from journeyman.app.journeyman import Journeyman
from journeyman.app.owners import dead_owners as dead
from journeyman.stores.store import SqlStore, open_store, sqlite_file

__all__ = [
    "Handle",
    "Journeyman",
    "Session",
    "SqlStore",
    "dead",
    "open_store",
    "sqlite_file",
    "task_assistant",
    "task_library",
]
