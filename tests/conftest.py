"""What all tests share: selection and order, hypothesis profiles, and a PostgreSQL server of our own.

`make check` and `make test` give the files of tests to several processes (pytest-xdist). The tests of one file stay
together and in order, so a module's fixtures are made once; a session's fixtures are made once in each process. What
processes share (`.bench`, the embedded engine) is locked; ports are chosen by the system. Plain `pytest` runs in one
process, with `-x`, `-k` and `--pdb` as usual.

A test marked `slow` takes seconds or starts servers; `make check` leaves it out. One marked `nightly` repeats a daily
test at full length; only `--nightly` runs it. How long a test waits for something is in `tests/waiting.py`.
"""

from __future__ import annotations

import itertools
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from benchmarks.postgres import postgres
from journeyman.core import data
from journeyman.core.data import Entity
from tests.engine import with_an_engine

_schemas = itertools.count(1)

# Whatever a test starts keeps its state (the key of the audit) away from the user's own.
os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir(), f"journeyman-tests-{os.getuid()}"))
os.environ.pop("JOURNEYMAN_AUDIT_KEY", None)

# A process that was started by nohup or in the background inherits that signals are ignored, and its children do: no
# Ctrl-C would reach them. What is caught is not inherited, so programs that tests start begin as in a terminal.
for _number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

# No test is judged by the clock: machines are noisy, and the first draw of a fresh clone builds tables.
for _profile, _examples in {"dev": 25, "ci": 50, "nightly": 2_000}.items():
    settings.register_profile(
        _profile,
        max_examples=_examples,
        derandomize=_profile == "ci",  # whether a change lands is not left to chance; the others search on
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nightly", action="store_true", help="also run the tests marked nightly")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out nightly tests; files that may take longest first, or one process would be left with them at the end."""
    if not config.getoption("nightly"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    longest: dict[Path, float] = {}
    for item in items:
        limit = item.get_closest_marker("timeout")
        seconds = limit.args[0] if limit else 1.0 if item.get_closest_marker("slow") else 0.0
        longest[item.path] = max(longest.get(item.path, 0.0), seconds)
    items.sort(key=lambda item: -longest[item.path])


@pytest.fixture(autouse=True, scope="session")
def _what_is_made_unchecked_would_pass() -> Iterator[None]:
    """Wherever our code makes an entity without checking it, the tests check it."""
    finish = data._set_private

    def checked(entity: Entity, nothing: None) -> None:
        """Stands in for the last thing that is done to such an entity."""
        finish(entity, nothing)
        assert entity == type(entity)(**entity.__dict__)
        assert [*entity.__dict__] == [*type(entity).model_fields], "they are written in this order"

    data._set_private = checked
    yield
    data._set_private = finish


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command that was told to log in this process leaves nothing to the tests after it."""
    names = ("journeyman", *(name for name in logging.Logger.manager.loggerDict if name.startswith("journeyman.")))
    before = {name: (list(logging.getLogger(name).handlers), logging.getLogger(name).level) for name in names}
    yield
    for name in ("journeyman", *(name for name in logging.Logger.manager.loggerDict if name.startswith("journeyman."))):
        handlers, level = before.get(name, ([], logging.NOTSET))
        logger = logging.getLogger(name)
        logger.handlers[:] = handlers
        if logger.level != level:
            logger.setLevel(level)


@pytest.fixture(scope="module")
def embedded_engine() -> Iterator[None]:
    with with_an_engine():
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    with postgres() as server:
        # The data need not outlive the machine; with syncs, the end of a session would write for minutes.
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server


@pytest.fixture
def own_server() -> Iterator[Any]:
    """A PostgreSQL server that a test may stop without harm to others."""
    with postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Any) -> str:
    """A database with nothing in it."""
    return fresh_schema(postgres_server.get_uri())


def fresh_schema(base: str) -> str:
    schema = f"test_{next(_schemas)}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{base}&options=-csearch_path%3D{schema}"
