"""Where facts are kept. One module an aggregate; nothing outside this room knows how."""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.stores.playbook_files import FilePlaybooks as FilePlaybooks
else:
    __getattr__, __dir__ = lazy_names(__name__)
