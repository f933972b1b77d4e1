"""The embedded model: a small tool-calling language model on this machine's processor; no key, no network.

``model`` is the adapter, ``tools`` writes what the engine reads, ``format`` writes the answers, ``files`` finds and
checks the engine's two files, ``worker`` owns its processes and ``engine`` is the program in them. What a request
settles itself, the engine's days among it, is read in ``core.arguments`` and ``core.days``.
"""

from journeyman.models.embedded.model import EmbeddedModel

__all__ = ["EmbeddedModel"]
