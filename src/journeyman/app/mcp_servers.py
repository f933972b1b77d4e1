"""A look at an MCP server before it is taken in: its tools, how they are graded, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.core.policy import Policy
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.execution.risk import base_risk
from journeyman.sources.mcp import McpServer
from journeyman.tools.checks import Finding
from journeyman.tools.library import ToolLibrary
from journeyman.tools.sources import SourceProblem


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server offers."""

    protocol_version: str | None
    tools: Sequence[tuple[ToolSpecification, RiskLevel]]
    findings: Sequence[Finding]
    """Only those that a person should see before a model does."""
    problems: Sequence[SourceProblem]


async def look_at_server(
    name: str,
    *,
    command: Sequence[str] | None = None,
    url: str | None = None,
    trust_annotations: bool = False,
    start_seconds: float = 60.0,
    policy: Policy | None = None,
) -> ServerReport:
    """Start or reach a server once. Raises ConfigurationError, which says why that failed."""
    source = McpServer(
        name=name, command=command, url=url, trust_annotations=trust_annotations, start_seconds=start_seconds
    )
    rules = policy or Policy()
    async with ToolLibrary(sources=[source]) as library:
        tools = [(item, base_risk(item, rules)) for item in library.specifications()]
        findings = [found for found in library.lint() if found.rule == "description-instructs"]
        return ServerReport(source.protocol_version, tools, findings, library.problems())
