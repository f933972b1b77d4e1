"""Objects by import path: modules and files, and what is said where nothing usable is there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman.execution.processes import ProcessPool
from journeyman.tools.paths import ImportPathError, import_path
from journeyman.tools.tool import Tool

SHOP = """
import os
from path_siblings import SHELVES
from journeyman import tool

runs = int(os.environ.get("PATH_SHOP_RUNS", "0")) + 1
os.environ["PATH_SHOP_RUNS"] = str(runs)

@tool(read_only=True, isolation="process")
def count_boxes(shelf: str) -> list[int]:
    '''Count the boxes on a shelf.'''
    return [os.getpid(), SHELVES[shelf]]

class Desk:
    drawer = count_boxes
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that is not on the Python path, with a file of tools and a sibling that it imports."""
    (tmp_path / "path_shop.py").write_text(SHOP)
    (tmp_path / "path_siblings.py").write_text("SHELVES = {'a': 3}\n")
    monkeypatch.setenv("PATH_SHOP_RUNS", "0")
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_file_imports_its_siblings_and_runs_once_however_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "link.py").symlink_to(folder / "path_shop.py")
    names = (f"{folder}/path_shop.py", "path_shop.py", "./path_shop.py", "link.py", "path_shop")
    assert {id(import_path(name)) for name in names} == {id(sys.modules["path_shop"])}
    assert import_path("path_shop:runs") == 1
    assert import_path("path_shop.py:Desk.drawer", kind=Tool) is import_path("path_shop:count_boxes")


def test_a_file_of_a_package_is_imported_as_a_part_of_it(folder: Path) -> None:
    package = folder / "outer" / "inner"
    package.mkdir(parents=True)
    for name in (package.parent / "__init__.py", package / "__init__.py"):
        name.write_text("LEVEL = __name__\n")
    (package / "part.py").write_text("from . import LEVEL\nfrom ..inner import LEVEL as same\nimport beside\n")
    (package / "beside.py").write_text("")
    assert import_path(f"{package}/part.py:__name__") == "outer.inner.part"
    assert import_path(f"{package}/part.py:LEVEL") == "outer.inner"
    assert import_path(f"{package}/__init__.py:LEVEL") == "outer.inner"


async def test_tools_of_a_file_run_in_processes_of_their_own(folder: Path) -> None:
    counting = import_path(f"{folder}/path_shop.py:count_boxes", kind=Tool)
    other = folder / "other"
    other.mkdir()
    (other / "path_shop.py").write_text("raise AssertionError('not the file that was named')")
    (other / "path_more.py").write_text("")
    import_path(f"{other}/path_more.py")  # its folder must not come before that of the tool
    pool = ProcessPool()
    try:
        pid, counted = await pool.run(counting.target, '{"shelf": "a"}', timeout=30, context={})
    finally:
        await pool.close()
    assert (counted, pid == os.getpid()) == (3, False)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("path_shop.py:count_boxs", "names nothing: module 'path_shop' has no 'count_boxs'; did you mean "),
        ("path_shop.py:Desk.door", "names nothing: a type has no 'door'"),
        ("gone.py:x", "names no file: 'gone.py' is not there"),
        ("gone:x", "names no module on the Python path"),
        ("path_shop:x", "names no module on the Python path; did you mean 'path_shop.py:x'?"),
        ("./path_shop:x", "is neither a module nor a file with the ending '.py'; did you mean 'path_shop.py:x'?"),
        (":x", "is no import path; write 'module:name' or 'file.py:name'"),
        ("raises.py:x", "cannot be imported: ZeroDivisionError: division by zero (raises.py, line 2)"),
        ("deeper.py:x", "cannot be imported: ZeroDivisionError: division by zero (raises.py, line 2)"),
        ("needs.py:x", "cannot be imported: ModuleNotFoundError: No module named 'not_installed' (needs.py, line 1)"),
        ("called.py:x", "cannot be imported: JSONDecodeError: Expecting value: line 1 column 1 (char 0) (called.py, "),
        ("exits.py:x", "cannot be imported: SystemExit: 3 (exits.py, line 2)"),
        ("typo.py:x", "cannot be imported: SyntaxError: invalid syntax (typo.py, line 2)"),
        ("json.py:x", "has the name of another module, 'json'; rename the file"),
        ("builtins.py:x", "has the name of another module, 'builtins'; rename the file"),
        ("one.two.py:x", "cannot be imported: the name of a module has no dots; rename the file"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, path: str, told: str
) -> None:
    monkeypatch.chdir(folder)
    for name, text in {
        "raises.py": "x = 1\ndef half(): return x / 0\nx = half()\n",
        "deeper.py": "import raises\n",
        "needs.py": "import not_installed\n",
        "called.py": "import json\nx = json.loads('')\n",
        "exits.py": "import sys\nsys.exit(3)\n",
        "typo.py": "x = 1\nx = =\n",
        "json.py": "x = 1",
        "builtins.py": "x = 1",
        "one.two.py": "x = 1",
    }.items():
        (folder / name).write_text(text)
    with pytest.raises(ImportPathError) as caught:
        import_path(path)
    assert str(caught.value).startswith(f"{path!r} {told}")


def test_an_object_of_another_kind_is_told_with_those_that_fit(folder: Path) -> None:
    file = f"{folder}/path_shop.py"
    with pytest.raises(ImportPathError, match=r"is an int, not a Tool; did you mean '.*path_shop.py:count_boxes'"):
        import_path(f"{file}:runs", kind=Tool)
    with pytest.raises(ImportPathError, match=r"has no 'boxes'; did you mean '.*path_shop.py:count_boxes'"):
        import_path(f"{file}:boxes", kind=Tool)
    with pytest.raises(ImportPathError, match="is a module, not a Tool"):
        import_path(file, kind=Tool)
