"""What is known about the user's world: documents, taken in, found again and forgotten."""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.core.memory import MemoryDocument as MemoryDocument
    from journeyman.core.memory import MemoryHit as MemoryHit
    from journeyman.memory.manager import MemoryManager as MemoryManager
else:
    __getattr__, __dir__ = lazy_names(__name__)
