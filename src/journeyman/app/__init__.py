"""The composition root: the only room where concrete parts meet. Everything above it is a door.

Doors may import nothing but this room and ``core``; what they use of other rooms is listed in ``__init__.pyi`` and
loaded when it is first used.
"""

from journeyman.core.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
