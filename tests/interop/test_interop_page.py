"""The page about other frameworks, read as in `tests/docs`, with these frameworks installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.terminal import Terminal
from tests.docs.test_pages import WITH_FRAMEWORKS, read
from tests.engine import with_an_engine


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_programs_and_commands_of_the_page_run(tmp_path: Path, packages_folder: str) -> None:
    (folder := tmp_path / "reader").mkdir()
    terminal = Terminal(folder, tmp_path / "programs", packages_folder)
    try:
        with with_an_engine():
            read(WITH_FRAMEWORKS, terminal)
    finally:
        terminal.close()
