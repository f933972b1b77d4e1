"""The command that installs an extra is one that works here."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest

from journeyman.core.lazy import install_command


class Installed:
    def __init__(self, origin: dict[str, Any] | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        return None if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "ends"),
    [
        (None, "pip install 'journeyman[serve]'"),
        ({"url": "https://example.com/journeyman.whl", "archive_info": {}}, "pip install 'journeyman[serve]'"),
        ({"url": "file:///a%20b/it's", "dir_info": {"editable": True}}, "-m pip install -e '/a b/it'\"'\"'s[serve]'"),
        ({"url": "file:///src", "dir_info": {}}, "-m pip install '/src[serve]'"),
    ],
)
def test_it_says_where_this_installation_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, ends: str
) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin))
    install_command.cache_clear()
    try:
        assert install_command("serve").endswith(ends)
    finally:
        install_command.cache_clear()


def test_what_is_not_installed_at_all_is_named_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    install_command.cache_clear()
    try:
        assert install_command("otel") == "pip install 'journeyman[otel]'"
    finally:
        install_command.cache_clear()
