"""Journeyman: tool-calling agents that people can trust and that get better with practice.

Public names are loaded when they are first used, so that ``import journeyman`` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent
    from journeyman.agent.documents import dump_agents, load_agents
    from journeyman.app.direct import run, run_sync, stream
    from journeyman.app.journeyman import Journeyman
    from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Approver, Deny
    from journeyman.core.calls import CallStatus, ToolCallRecord
    from journeyman.core.context import ToolContext
    from journeyman.core.errors import (
        ApprovalError,
        AuditError,
        BindingError,
        ConfigurationError,
        ErrorCategory,
        ErrorInfo,
        JourneymanError,
        ModelError,
        Severity,
        SignatureError,
        StoreError,
        ToolDefinitionError,
        ToolError,
    )
    from journeyman.core.gaps import ToolGapReport, UserIntent
    from journeyman.core.messages import Message, Role, ToolCall, Usage
    from journeyman.core.playbook import PlaybookBullet, ToolCallingStrategy
    from journeyman.core.policy import BreakerRule, Policy, RateLimit
    from journeyman.core.principals import Principal
    from journeyman.core.protocols import Clock, Deltas, Journal, Model, ModelRequest, ModelResponse
    from journeyman.core.risk import RiskLevel, requires_approval
    from journeyman.core.runs import AgentResponse, Limits, ReasoningStep, RunStatus, TaskInput
    from journeyman.core.specification import ToolCategory, ToolConfiguration, ToolSpecification
    from journeyman.core.tasks import Attachment, Task
    from journeyman.execution.risk import categorize_action_risk
    from journeyman.tools.decorator import tool
    from journeyman.tools.library import ToolLibrary
    from journeyman.tools.tool import Tool

__version__ = "0.1.0"

_HOMES = {
    "agent.agent": ("Agent",),
    "agent.documents": ("dump_agents", "load_agents"),
    "app.journeyman": ("Journeyman",),
    "app.direct": ("run", "run_sync", "stream"),
    "core.approvals": ("Approval", "ApprovalStatus", "Approve", "Approver", "Deny"),
    "core.calls": ("CallStatus", "ToolCallRecord"),
    "core.context": ("ToolContext",),
    "core.errors": (
        "ApprovalError",
        "AuditError",
        "BindingError",
        "ConfigurationError",
        "ErrorCategory",
        "ErrorInfo",
        "JourneymanError",
        "ModelError",
        "Severity",
        "SignatureError",
        "StoreError",
        "ToolDefinitionError",
        "ToolError",
    ),
    "core.playbook": ("PlaybookBullet", "ToolCallingStrategy"),
    "core.messages": ("Message", "Role", "ToolCall", "Usage"),
    "core.policy": ("BreakerRule", "Policy", "RateLimit"),
    "core.principals": ("Principal",),
    "core.protocols": ("Clock", "Deltas", "Journal", "Model", "ModelRequest", "ModelResponse"),
    "core.risk": ("RiskLevel", "requires_approval"),
    "core.runs": ("AgentResponse", "Limits", "ReasoningStep", "RunStatus", "TaskInput"),
    "core.specification": ("ToolCategory", "ToolConfiguration", "ToolSpecification"),
    "core.tasks": ("Attachment", "Task"),
    "core.gaps": ("ToolGapReport", "UserIntent"),
    "execution.risk": ("categorize_action_risk",),
    "tools.decorator": ("tool",),
    "tools.library": ("ToolLibrary",),
    "tools.tool": ("Tool",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "AgentResponse",
    "Approval",
    "ApprovalError",
    "ApprovalStatus",
    "Approve",
    "Approver",
    "Attachment",
    "AuditError",
    "BindingError",
    "BreakerRule",
    "CallStatus",
    "Clock",
    "ConfigurationError",
    "Deltas",
    "Deny",
    "ErrorCategory",
    "ErrorInfo",
    "Journal",
    "Journeyman",
    "JourneymanError",
    "Limits",
    "Message",
    "Model",
    "ModelError",
    "ModelRequest",
    "ModelResponse",
    "PlaybookBullet",
    "Policy",
    "Principal",
    "RateLimit",
    "ReasoningStep",
    "RiskLevel",
    "Role",
    "RunStatus",
    "Severity",
    "SignatureError",
    "StoreError",
    "Task",
    "TaskInput",
    "Tool",
    "ToolCall",
    "ToolCallRecord",
    "ToolCallingStrategy",
    "ToolCategory",
    "ToolConfiguration",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolGapReport",
    "ToolLibrary",
    "ToolSpecification",
    "Usage",
    "UserIntent",
    "categorize_action_risk",
    "dump_agents",
    "load_agents",
    "requires_approval",
    "run",
    "run_sync",
    "stream",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'journeyman' has no attribute {name!r}")
    value = getattr(import_module(f"journeyman.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
