"""The governed pipeline: every call of every tool, from every door, passes here once. One file per concern."""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.core.policy import requires_approval as requires_approval
    from journeyman.execution.checks import categorize_action_risk as categorize_action_risk
else:
    __getattr__, __dir__ = lazy_names(__name__)
