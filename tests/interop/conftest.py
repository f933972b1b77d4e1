"""The real packages of other frameworks, in a folder of their own: nothing else here needs their many dependencies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import packages


@pytest.fixture(scope="session")
def frameworks() -> Iterator[None]:
    """LangChain and LlamaIndex can be imported."""
    folder = str(packages.install("interop", Path(__file__).with_name("requirements.txt")))
    sys.path.append(folder)  # last: nothing of ours may be shadowed
    yield
    sys.path.remove(folder)
