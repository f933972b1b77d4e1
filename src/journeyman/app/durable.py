"""What doors need of durable runs. Not in ``journeyman.app``: whoever only calls ``run()`` loads no store."""

from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.app.owners import dead
from journeyman.stores.store import SqlStore, open_store, sqlite_file

__all__ = ["Handle", "Journeyman", "SqlStore", "dead", "open_store", "sqlite_file"]
