"""What the durable tests share: a ledger, the shop's tools, and apps on one SQLite file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from journeyman import Agent, Model, ToolLibrary
from journeyman.app.journeyman import Journeyman
from tests.app.shop import Ledger, clerk, shop

Opens: TypeAlias = Callable[..., Journeyman]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


@pytest.fixture
def library(ledger: Ledger) -> ToolLibrary:
    return shop(ledger)


@pytest.fixture
def agent(library: ToolLibrary) -> Agent:
    return clerk(library)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def opens(url: str, library: ToolLibrary) -> Opens:
    """Another app on the same store, as another process would make it."""

    def open_app(model: Model, **options: Any) -> Journeyman:
        return Journeyman(**{"library": library, "store": url, "poll_seconds": 0.05, "model": model, **options})

    return open_app
