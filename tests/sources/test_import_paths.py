"""Tools by their import paths, as a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman import ConfigurationError, ToolLibrary
from journeyman.sources import ImportPaths, ToolSource


async def test_what_import_paths_name_is_there_while_the_library_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_shop.py").write_text("def count_boxes(shelf: str) -> int:\n    'Count.'\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    source: ToolSource = ImportPaths(["imported_shop:count_boxes", "journeyman.toolkits.hello:say_hello"])
    library = ToolLibrary(sources=[source])
    async with library:
        assert library.names() == ["count_boxes", "sayHello"]
    assert library.names() == []
    async with library:
        assert len(library) == 2


async def test_every_path_that_cannot_be_used_is_named() -> None:
    source = ImportPaths(["journeyman.toolkits.hello:say_hallo", "no_such_module:x"], name="tools of the shop")
    with pytest.raises(ConfigurationError) as caught:
        await ToolLibrary(sources=[source]).open()
    assert "'tools of the shop' cannot be opened" in str(caught.value)
    assert "did you mean 'journeyman.toolkits.hello:say_hello'" in str(caught.value)
    assert "no_such_module" in str(caught.value)
