"""Clients that others publish work with the gateway; and what the documentation prints of it is what they said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.mcp import clients, registry

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"


def test_the_table_of_the_documentation_names_the_pinned_clients() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("<!-- clients")[2].partition("<!-- end of clients")[0]
    named = re.findall(r"^\| (.+), (stdio|http) \|", text, re.MULTILINE)
    assert named == [(name, transport) for transport in ("stdio", "http") for name in clients.CLIENTS]


def test_the_pinned_packages_name_no_host() -> None:
    for file in registry.NODE.glob("*/package-lock.json"):
        packages = json.loads(file.read_text())["packages"]
        assert not any(package.keys() & {"resolved", "funding"} for package in packages.values())
        assert all("integrity" in package for name, package in packages.items() if name)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_every_client_lists_and_calls_tools_through_the_gateway() -> None:
    found = await clients.all_clients()
    assert all(told.right for told in found.values()), found
    assert clients.table(found) in PAGE.read_text(encoding="utf-8")
