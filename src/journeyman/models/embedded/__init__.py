"""The embedded model: a small tool-calling language model on this machine's processor; no key, no network.

``model`` is the adapter, ``tools`` writes what the engine reads and what is answered, ``files`` finds and
checks the engine's two files, ``worker`` owns its processes and ``engine`` is the program in them. What a request
settles itself, the engine's days among it, is read in ``models.arguments``.
"""

from journeyman.models.embedded.model import EmbeddedModel

__all__ = ["EmbeddedModel"]
