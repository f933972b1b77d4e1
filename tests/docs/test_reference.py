"""The reference page names every public name, and no other."""

import re
from pathlib import Path

import pytest

import journeyman
import journeyman.experiments
import journeyman.testing

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`(\w+)[`(]", PAGE))


@pytest.mark.parametrize("name", [*journeyman.__all__, *journeyman.testing.__all__, *journeyman.experiments.__all__])
def test_every_public_name_is_on_the_reference_page(name: str) -> None:
    assert name in NAMED
