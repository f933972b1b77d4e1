"""Journeyman: tool-calling agents that people can trust and that get better with practice.

The public names are those that type checkers see imported here. Each is loaded when it is first used, so that
``import journeyman`` stays cheap. What fewer programs need is in the rooms' own modules, which ``_MOVED`` names.
"""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

__version__ = "0.1.0"

_MOVED = {
    "journeyman.learning": (
        "Advice Curator Demonstration Label LabelSource LearningSettings Playbook PlaybookBullet Reflector "
        "StrategySource ToolCallingStrategy"
    ),
    "journeyman.choosing": "Gap IntentReader IntentType ToolGapDetector ToolGapReport UserIntent add_intent_type",
    "journeyman.memory": "MemoryDocument MemoryHit",
    "journeyman.models": "Deltas ModelRequest ModelResponse Price",
    "journeyman.tasks": "Attachment Task",
    "journeyman.execution": "categorize_action_risk requires_approval",
    "journeyman.stores": "FilePlaybooks",
    "journeyman.core": (
        "ApprovalStatus ArgumentSource AuditError ChainStep Clock ErrorCategory InvalidDataError Journal ReasoningStep "
        "SessionTakenError Severity SignatureError"
    ),
    "journeyman.app": "Researcher",
}
"""Names that were here once, by the module that has them now."""

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent as Agent
    from journeyman.agent.documents import dump_agents as dump_agents
    from journeyman.agent.documents import load_agents as load_agents
    from journeyman.app.direct import run as run
    from journeyman.app.direct import run_batch as run_batch
    from journeyman.app.direct import run_sync as run_sync
    from journeyman.app.direct import stream as stream
    from journeyman.app.journeyman import Journeyman as Journeyman
    from journeyman.app.quarantine import quarantine as quarantine
    from journeyman.app.splits import Split as Split
    from journeyman.core.approvals import Approval as Approval
    from journeyman.core.approvals import Approve as Approve
    from journeyman.core.approvals import Approver as Approver
    from journeyman.core.approvals import Deny as Deny
    from journeyman.core.calls import CallStatus as CallStatus
    from journeyman.core.calls import ToolCallRecord as ToolCallRecord
    from journeyman.core.calls import ToolContext as ToolContext
    from journeyman.core.content import Audio as Audio
    from journeyman.core.content import Document as Document
    from journeyman.core.content import Image as Image
    from journeyman.core.errors import ApprovalError as ApprovalError
    from journeyman.core.errors import BindingError as BindingError
    from journeyman.core.errors import ConfigurationError as ConfigurationError
    from journeyman.core.errors import ErrorInfo as ErrorInfo
    from journeyman.core.errors import JourneymanError as JourneymanError
    from journeyman.core.errors import ModelError as ModelError
    from journeyman.core.errors import StoreError as StoreError
    from journeyman.core.errors import ToolDefinitionError as ToolDefinitionError
    from journeyman.core.errors import ToolError as ToolError
    from journeyman.core.model_settings import ModelSettings as ModelSettings
    from journeyman.core.policy import BreakerRule as BreakerRule
    from journeyman.core.policy import Policy as Policy
    from journeyman.core.policy import Principal as Principal
    from journeyman.core.policy import RateLimit as RateLimit
    from journeyman.core.policy import RiskLevel as RiskLevel
    from journeyman.core.protocols import Model as Model
    from journeyman.core.runs import AgentResponse as AgentResponse
    from journeyman.core.runs import Limits as Limits
    from journeyman.core.runs import Message as Message
    from journeyman.core.runs import Role as Role
    from journeyman.core.runs import RunStatus as RunStatus
    from journeyman.core.runs import TaskInput as TaskInput
    from journeyman.core.runs import ToolCall as ToolCall
    from journeyman.core.runs import Usage as Usage
    from journeyman.core.specification import ToolCategory as ToolCategory
    from journeyman.core.specification import ToolConfiguration as ToolConfiguration
    from journeyman.core.specification import ToolSpecification as ToolSpecification
    from journeyman.tools.decorator import tool as tool
    from journeyman.tools.library import ToolLibrary as ToolLibrary
    from journeyman.tools.published import prompt as prompt
    from journeyman.tools.published import resource as resource
    from journeyman.tools.tool import Tool as Tool

    __all__: list[str]
else:
    __getattr__, __dir__ = lazy_names(__name__, moved=_MOVED)
