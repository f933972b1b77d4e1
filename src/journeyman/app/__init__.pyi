"""What doors use of the rooms below; ``__init__`` loads it from here."""

from journeyman.agent.agent import Agent as Agent
from journeyman.agent.documents import AgentFile as AgentFile
from journeyman.agent.documents import files_noted as files_noted
from journeyman.agent.documents import load_agents as load_agents
from journeyman.app.approvals import checked_arguments as checked_arguments
from journeyman.app.configuration import Configuration as Configuration
from journeyman.app.configuration import found_file as found_file
from journeyman.app.configuration import rules_of as rules_of
from journeyman.app.direct import run as run
from journeyman.app.direct import run_sync as run_sync
from journeyman.app.direct import stream as stream
from journeyman.app.handles import Handle as Handle
from journeyman.app.handles import Session as Session
from journeyman.app.journeyman import Journeyman as Journeyman
from journeyman.app.service import following_assistant as following_assistant
from journeyman.app.service import hello_library as hello_library
from journeyman.app.service import local_library as local_library
from journeyman.app.service import task_assistant as task_assistant
from journeyman.app.service import task_library as task_library
from journeyman.experiments import Experiment as Experiment
from journeyman.experiments import Progress as Progress
from journeyman.experiments import Report as Report
from journeyman.gram import dump_tools as dump_tools
from journeyman.memory.folders import ImportedFile as ImportedFile
from journeyman.models.addresses import address_of as address_of
from journeyman.models.addresses import is_configured as is_configured
from journeyman.models.resolve import explain_choice as explain_choice
from journeyman.settings.problems import SettingsError as SettingsError
from journeyman.settings.published import json_schema as json_schema
from journeyman.settings.reading import Loaded as Loaded
from journeyman.settings.reading import find_file as find_file
from journeyman.settings.reading import read_settings as read_settings
from journeyman.settings.showing import setting_values as setting_values
from journeyman.stores.store import SqlStore as SqlStore
from journeyman.stores.in_memory import AuditedJournal as AuditedJournal
from journeyman.stores.store import open_store as open_store
from journeyman.stores.store import sqlite_file as sqlite_file
from journeyman.telemetry.logs import JsonFormatter as JsonFormatter
from journeyman.tools.decorator import tool as tool
from journeyman.tools.library import ToolLibrary as ToolLibrary
from journeyman.tools.paths import ImportPathError as ImportPathError
from journeyman.tools.paths import import_path as import_path
from journeyman.tools.paths import split_path as split_path
from journeyman.tools.tool import Tool as Tool

__all__: list[str]
