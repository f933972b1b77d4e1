"""Which of many tools serves a request, what the request is after, and what no tool can do yet.

Nothing here runs a tool. The words, turns of phrase and weights that are compared are data: the ``.txt`` and ``.json``
files.
"""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names
from journeyman.core.words import Patterns, WordLists

wording = Patterns("journeyman.choosing", "patterns.txt")
vocabulary = WordLists("journeyman.choosing", "vocabulary.txt")

if TYPE_CHECKING:
    from journeyman.choosing.gaps import ToolGapDetector as ToolGapDetector
    from journeyman.choosing.intents import IntentReader as IntentReader
    from journeyman.core.gaps import Gap as Gap
    from journeyman.core.gaps import IntentType as IntentType
    from journeyman.core.gaps import ToolGapReport as ToolGapReport
    from journeyman.core.gaps import UserIntent as UserIntent
    from journeyman.core.gaps import add_intent_type as add_intent_type
else:
    __getattr__, __dir__ = lazy_names(__name__)
