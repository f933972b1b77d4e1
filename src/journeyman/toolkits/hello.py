"""The tool of the Hello World agent, under the name its gram document uses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from journeyman.core.policy import RiskLevel
from journeyman.tools.decorator import tool


@tool(name="sayHello", risk=RiskLevel.REVERSIBLE, read_only=True, examples=[{"name": "Ada"}])
def say_hello(name: Annotated[str, Field(description="Who is greeted.")]) -> str:
    """Returns a friendly greeting message for the given name"""
    return f"Hello, {name}! Nice to meet you."
