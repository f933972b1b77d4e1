"""Agents and tools as text that people can read, diff, review and share, in gram notation.

``parse`` and ``dumps`` are for any gram; ``load_tools`` and ``dump_tools`` for documents that describe tools. Agents
come from ``Agent.from_gram`` and ``load_agents`` of the package itself. All of it is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.gram.data import Annotated as Annotated
    from journeyman.gram.data import Arrow as Arrow
    from journeyman.gram.data import Document as Document
    from journeyman.gram.data import Fault as Fault
    from journeyman.gram.data import GramDocumentError as GramDocumentError
    from journeyman.gram.data import GramError as GramError
    from journeyman.gram.data import GramSyntaxError as GramSyntaxError
    from journeyman.gram.data import Label as Label
    from journeyman.gram.data import Map as Map
    from journeyman.gram.data import Measurement as Measurement
    from journeyman.gram.data import Path as Path
    from journeyman.gram.data import Pattern as Pattern
    from journeyman.gram.data import Property as Property
    from journeyman.gram.data import Range as Range
    from journeyman.gram.data import Reference as Reference
    from journeyman.gram.data import Subject as Subject
    from journeyman.gram.data import Symbol as Symbol
    from journeyman.gram.data import Tagged as Tagged
    from journeyman.gram.documents import dump_tools as dump_tools
    from journeyman.gram.documents import load_tools as load_tools
    from journeyman.gram.parsing import load as load
    from journeyman.gram.parsing import parse as parse
    from journeyman.gram.printing import dumps as dumps
    from journeyman.gram.signature import signature_schema as signature_schema
else:
    __getattr__, __dir__ = lazy_names(__name__)
