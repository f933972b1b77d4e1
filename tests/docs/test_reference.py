"""The reference page names every public name, those of a room in the row of its module."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import journeyman
from scripts import write_signatures
from tests.test_public_names import IN_ROOMS

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
MODULES = [*IN_ROOMS, "journeyman.testing", "journeyman.experiments"]


def named_in(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)[`(]", text))


def test_every_public_name_is_on_the_reference_page() -> None:
    assert set(journeyman.__all__) <= named_in(PAGE)


@pytest.mark.parametrize("module", MODULES)
def test_the_row_of_a_module_has_its_names(module: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{module}` |"))
    assert named_in(row) == set(import_module(module).__all__)


def test_the_signatures_are_those_of_the_code() -> None:
    text = write_signatures.PAGE.read_text(encoding="utf-8")
    assert text == write_signatures.page(), "run 'python -m scripts.write_signatures'"
    described = set(re.findall(r"^### `(\w+)`$", text, re.MULTILINE))
    assert described == set(journeyman.__all__) - {"Approver", "__version__"}
    assert "    base_url: str | None = None,\n" in text.replace("SecretText", "str")
