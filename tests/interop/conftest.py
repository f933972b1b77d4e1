"""The real packages of other frameworks, in a folder of their own: nothing else here needs their many dependencies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import packages


@pytest.fixture(scope="session")
def packages_folder() -> str:
    """Where LangChain and LlamaIndex are installed."""
    return str(packages.install("interop", Path(__file__).with_name("requirements.txt")))


@pytest.fixture(scope="session")
def frameworks(packages_folder: str) -> Iterator[None]:
    """LangChain and LlamaIndex can be imported."""
    sys.path.append(packages_folder)  # last: nothing of ours may be shadowed
    yield
    sys.path.remove(packages_folder)
