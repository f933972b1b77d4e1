"""Tools in processes of their own see a clean environment, and of the secrets those that they declared."""

from __future__ import annotations

import pytest

from journeyman import ToolContext, ToolDefinitionError, tool
from journeyman.testing import call
from tests.execution.pathway import Path
from tests.execution.process_targets import environment, secrets_seen, undeclared


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-canary")
    monkeypatch.setenv("JOURNEYMAN_SECRET_MINE", "mine-canary")
    monkeypatch.setenv("JOURNEYMAN_SECRET_OTHER", "other-canary")


async def test_a_child_inherits_no_secret_from_the_environment() -> None:
    seen = (await Path([environment]).call(call("environment"))).result
    assert "PATH" in seen
    assert not [name for name in seen if "KEY" in name or "SECRET" in name or "TOKEN" in name]


async def test_a_child_is_given_the_secrets_that_its_tool_declares() -> None:
    assert (await Path([secrets_seen]).call(call("secrets_seen"))).result == {"names": ["MINE"], "length": 11}
    assert (await Path([undeclared]).call(call("undeclared"))).result == []


async def test_a_tool_in_a_thread_that_declares_secrets_gets_no_others() -> None:
    @tool(risk="reversible", secrets=("MINE",))
    def names(context: ToolContext) -> list[str]:
        """Which secrets there are."""
        return sorted(context.secrets)

    assert (await Path([names]).call(call("names"))).result == ["MINE"]
    assert names.specification.secrets == ("MINE",)
    assert "canary" not in names.specification.model_dump_json()


def test_a_name_that_is_none_is_refused() -> None:
    for wrong in (["NOT A NAME"], "MINE", ["a=b"]):
        with pytest.raises(ToolDefinitionError, match="secret"):

            @tool(secrets=wrong)
            def work(context: ToolContext) -> None:
                """Work."""
