"""Learning from ended runs: what worked is kept as demonstrations, found again by the request, and given to later runs.

It reads facts and labels, and gives advice. It knows neither the loop nor the database.
"""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names
from journeyman.core.words import Patterns, WordLists

listed = WordLists("journeyman.learning", "words.txt")
shapes = Patterns("journeyman.learning", "abstraction.txt")

if TYPE_CHECKING:
    from journeyman.core.approvals import Label as Label
    from journeyman.core.approvals import LabelSource as LabelSource
    from journeyman.core.playbook import Advice as Advice
    from journeyman.core.playbook import Demonstration as Demonstration
    from journeyman.core.playbook import PlaybookBullet as PlaybookBullet
    from journeyman.core.playbook import StrategySource as StrategySource
    from journeyman.core.playbook import ToolCallingStrategy as ToolCallingStrategy
    from journeyman.learning.curator import Curator as Curator
    from journeyman.learning.forms import LearningSettings as LearningSettings
    from journeyman.learning.playbook import Playbook as Playbook
    from journeyman.learning.reflector import Reflector as Reflector
else:
    __getattr__, __dir__ = lazy_names(__name__)
