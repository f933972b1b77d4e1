"""Journeyman: tool-calling agents that people can trust and that get better with practice.

The public names are listed once, in ``__init__.pyi``, which type checkers read as well. Each is loaded when it is first
used, so that ``import journeyman`` stays cheap.
"""

from journeyman.core.lazy import lazy_names

__version__ = "0.1.0"
__getattr__, __dir__ = lazy_names(__name__, __file__)
