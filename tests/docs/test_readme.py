"""Python in the documentation runs as printed, and so do the examples; links lead somewhere.

The blocks of one page run in order, in one namespace, with top-level ``await`` allowed. They bring their own scripted
model: a key is not there.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.waiting import WAIT_SECONDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[int, str]]:
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)), found[1]) for found in BLOCK.finditer(text)]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_every_python_block_of_a_page_runs(page: Path, bare: None, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(re.sub(r"\W", "_", name_of(page)))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for line, code in blocks(page):
        tree = ast.increment_lineno(ast.parse(code, name_of(page)), line)
        compiled = compile(tree, name_of(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        pending = eval(compiled, module.__dict__)
        if inspect.iscoroutine(pending):
            asyncio.run(pending)


def test_the_first_program_prints_what_the_page_says(bare: None, capsys: pytest.CaptureFixture[str]) -> None:
    [(_, code), *_] = blocks(ROOT / "README.md")
    assert len(code.splitlines()) <= 15
    exec(compile(code, "README.md", "exec"), {"__name__": "first"})
    assert capsys.readouterr().out.startswith("W-17 is shipped.\n1. Calls lookup_order.\n   lookup_order → success")


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=name_of)
def test_an_example_runs(example: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", f"examples.{example.stem}"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    found = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in found if not (page.parent / link).exists()] == []
