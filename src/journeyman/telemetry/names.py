"""Names of attributes, spans and metrics: those of the semantic conventions, and ours where these have none.

The published constants are still marked as experimental and move between versions; a test compares them with these.
"""

from __future__ import annotations

OPERATION = "gen_ai.operation.name"
CHAT, INVOKE_AGENT, EXECUTE_TOOL = "chat", "invoke_agent", "execute_tool"
AGENT_NAME = "gen_ai.agent.name"
CONVERSATION_ID = "gen_ai.conversation.id"
PROVIDER_NAME = "gen_ai.provider.name"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOKEN_TYPE = "gen_ai.token.type"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
ERROR_TYPE = "error.type"
DB_SYSTEM = "db.system.name"
DB_OPERATION = "db.operation.name"

TOKEN_USAGE = "gen_ai.client.token.usage"
OPERATION_DURATION = "gen_ai.client.operation.duration"

RUN_STATUS = "journeyman.run.status"
RUN_GAP = "journeyman.run.gap"
STEP = "journeyman.step"
CALL_STATUS = "journeyman.call.status"
CALL_ATTEMPTS = "journeyman.call.attempts"
CALL_CACHED = "journeyman.call.cached"
CALL_RISK = "journeyman.call.risk"
CALL_UNGROUNDED = "journeyman.call.ungrounded"
APPROVAL_STATUS = "journeyman.approval.status"
APPROVAL_ID = "journeyman.approval.id"

RUN_DURATION = "journeyman.run.duration"
COST = "journeyman.cost"
APPROVALS = "journeyman.approvals"
APPROVAL_WAIT = "journeyman.approval.wait"
REFUSALS = "journeyman.refusals"
GAPS = "journeyman.gaps"
