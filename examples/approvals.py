"""Who may cancel an order: a rule that answers for a person, and sees exactly the arguments that would run."""

from __future__ import annotations

from examples.shop import agent, library
from journeyman import Approval, Approve, Deny, Principal, run_sync
from journeyman.testing import ScriptedModel, call, say, together


async def decide(approval: Approval) -> Approve | Deny:
    """Anything could happen here: a question in a chat, a row in a table, a person at a desk."""
    print(f"{approval.tool_name}({approval.arguments}) is {approval.risk.value}")
    if approval.arguments["order_id"] == "W-17":
        return Deny(reason="W-17 is on its way already", by="the rule")
    return Approve(by="the rule")


if __name__ == "__main__":
    response = run_sync(
        agent,
        "Cancel W-17 and W-18.",
        library=library,
        approver=decide,
        principal=Principal("ada", permissions={"orders:write"}),
        model=ScriptedModel(
            [
                together(call("cancel_order", order_id="W-17"), call("cancel_order", order_id="W-18")),
                say("W-18 is cancelled. W-17 is on its way already and cannot be."),
            ]
        ),
    )
    print(response.reasoning_trace)
