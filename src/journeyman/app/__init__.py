"""The composition root: the only room where concrete parts meet. Everything above it is a door.

Doors may import nothing but this room and ``core``. Most of what they need is in its modules; what they pass on of
other rooms, types above all, is listed here and loaded when it is first used. A test holds the list: it only shrinks.
"""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent as Agent
    from journeyman.agent.documents import AgentFile as AgentFile
    from journeyman.app.config_tools import apply_configuration as apply_configuration
    from journeyman.app.direct import run as run
    from journeyman.app.direct import run_sync as run_sync
    from journeyman.app.direct import stream as stream
    from journeyman.app.handles import Handle as Handle
    from journeyman.app.handles import Session as Session
    from journeyman.app.journeyman import Journeyman as Journeyman
    from journeyman.app.research import Researcher as Researcher
    from journeyman.app.research import ResearcherAgent as ResearcherAgent
    from journeyman.experiments import Experiment as Experiment
    from journeyman.experiments import Progress as Progress
    from journeyman.experiments import Report as Report
    from journeyman.learning.forms import LearningSettings as LearningSettings
    from journeyman.memory.folders import ImportedFile as ImportedFile
    from journeyman.stores.store import SqlStore as SqlStore
    from journeyman.toolkits.slack.client import Pace as Pace
    from journeyman.tools.library import ToolLibrary as ToolLibrary
    from journeyman.tools.paths import split_path as split_path
    from journeyman.tools.rendering import rendered as rendered
else:
    __getattr__, __dir__ = lazy_names(__name__)
