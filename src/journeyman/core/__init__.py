"""Plain data and protocols: calls, messages, runs, events, errors, risk. No I/O, no behaviour worth naming."""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.core.approvals import ApprovalStatus as ApprovalStatus
    from journeyman.core.calls import ArgumentSource as ArgumentSource
    from journeyman.core.calls import DataLabel as DataLabel
    from journeyman.core.calls import FlowDecision as FlowDecision
    from journeyman.core.errors import AuditError as AuditError
    from journeyman.core.errors import ErrorCategory as ErrorCategory
    from journeyman.core.errors import InvalidDataError as InvalidDataError
    from journeyman.core.errors import SessionTakenError as SessionTakenError
    from journeyman.core.errors import Severity as Severity
    from journeyman.core.errors import SignatureError as SignatureError
    from journeyman.core.protocols import Clock as Clock
    from journeyman.core.protocols import Journal as Journal
    from journeyman.core.runs import ReasoningStep as ReasoningStep
    from journeyman.core.storing import ChainStep as ChainStep
else:
    __getattr__, __dir__ = lazy_names(__name__)
