"""Docstrings of the three common styles, and what is kept of them."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from journeyman.tools.callables import Documentation, read_docstring

GOOGLE = """Look up an order.

    Use when the user names an order.

    Args:
        order_id (str): The number on the receipt,
            starting with a W.
        limit: How many lines.

    Returns:
        dict: The order.

    Raises:
        KeyError: There is none.

    Errors:
        NOT_FOUND: ask the user again.
    """

NUMPY = """Look up an order.

    Use when the user names an order.

    Parameters
    ----------
    order_id : str
        The number on the receipt,
        starting with a W.
    limit
        How many lines.

    Returns
    -------
    dict
        The order.

    Raises
    ------
    KeyError
        There is none.

    Errors
    ------
    NOT_FOUND: ask the user again.
    """

SPHINX = """Look up an order.

    Use when the user names an order.

    :param order_id: The number on the receipt,
        starting with a W.
    :type order_id: str
    :param int limit: How many lines.
    :returns: The order.
    :rtype: dict
    :raises KeyError: There is none.

    Errors: NOT_FOUND: ask the user again.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_each_style_says_the_same(text: str) -> None:
    found = read_docstring(text)
    assert found.parameters == {
        "order_id": "The number on the receipt,\nstarting with a W.",
        "limit": "How many lines.",
    }
    assert found.returns == "The order."
    assert found.description.startswith("Look up an order.\n\nUse when the user names an order.\n\nErrors")
    assert found.description.endswith("NOT_FOUND: ask the user again.")
    assert "KeyError" not in found.description
    assert "\n\n\n" not in found.description


def test_a_list_of_errors_keeps_its_layout() -> None:
    assert read_docstring(GOOGLE).description.endswith("Errors:\n    NOT_FOUND: ask the user again.")


def test_text_after_a_section_is_kept() -> None:
    found = read_docstring("Do.\n\nArgs:\n    x: The x.\nMind the gap.\n\nExample:\n    >>> do(1)")
    assert found.description == "Do.\n\nMind the gap.\n\nExample:\n    >>> do(1)"
    assert found.parameters == {"x": "The x."}


@pytest.mark.parametrize("text", [None, "", "   \n  "])
def test_no_docstring_is_no_documentation(text: str | None) -> None:
    assert read_docstring(text) == Documentation("", {}, None)


def test_a_plain_docstring_is_all_description() -> None:
    text = "Say hello.\n\nReturns: nothing is a section here, nor is\nthis :param in the text."
    assert read_docstring(text) == Documentation(text, {}, None)


@pytest.mark.parametrize("title", ["Args", "Arguments", "Params", "Parameters", "Keyword Args", "Other Parameters"])
def test_every_title_of_a_parameters_section_is_known(title: str) -> None:
    found = read_docstring(f"Do.\n\n{title}:\n    x (int): The x.")
    assert (found.description, found.parameters) == ("Do.", {"x": "The x."})


def test_a_section_may_follow_at_once_or_after_a_blank_line() -> None:
    found = read_docstring("Do.\nArgs:\n\n    x: The x.\nReturns:\n    The y.")
    assert found == Documentation("Do.", {"x": "The x."}, "The y.")


def test_several_results_are_kept_as_written() -> None:
    found = read_docstring("Do.\n\nReturns:\n    status (str): How it went.\n    items (list): What came.")
    assert found.returns == "status (str): How it went.\nitems (list): What came."


def test_a_result_that_wraps_without_indentation_is_whole() -> None:
    found = read_docstring("Do.\n\nReturns:\n    The order and\n    its state: open or closed.")
    assert found.returns == "The order and\nits state: open or closed."


def test_numpy_parameters_may_share_a_description() -> None:
    found = read_docstring("Do.\n\nParameters\n----------\nx, y : int\n    A coordinate.")
    assert found.parameters == {"x": "A coordinate.", "y": "A coordinate."}


def test_decorated_names_are_plain_names() -> None:
    found = read_docstring("Do.\n\nArgs:\n    `x` (int): The x.\n    **options: The rest.\n    - z: Listed.")
    assert found.parameters == {"x": "The x.", "options": "The rest.", "z": "Listed."}


def test_a_sloppy_docstring_is_read_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        found = read_docstring(
            "Do.\n\nArgs:\n    x The x, without a colon\n    y: The y.\n\nRaises:\n    nothing at all"
        )
    assert found.parameters["y"] == "The y."
    assert not caplog.records


def test_the_parser_is_imported_only_for_sections() -> None:
    program = (
        "import sys; from journeyman.tools.callables import read_docstring; read_docstring('Say hello.');"
        "print('griffe' in sys.modules); read_docstring('Do.\\n\\nArgs:\\n    x: y'); print('griffe' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
