"""What tokens cost: a price list by model, and the cost of a run by it.

List prices change and differ between contracts: whoever needs exact figures gives prices of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from journeyman.core.data import Entity
from journeyman.core.messages import Usage

_MILLION = 1_000_000


class Price(Entity):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


def _listed(table: str) -> dict[str, Price]:
    rows = (line.split() for line in table.strip().splitlines())
    return {name: Price(input=float(given), output=float(made)) for name, given, made in rows}


def list_prices() -> dict[str, Price]:
    """The providers' list prices as published in autumn 2025, by the beginning of the model's name."""
    return _listed("""
        gpt-5               1.25  10.00
        gpt-5-mini          0.25   2.00
        gpt-5-nano          0.05   0.40
        gpt-4.1             2.00   8.00
        gpt-4.1-mini        0.40   1.60
        gpt-4.1-nano        0.10   0.40
        gpt-4o              2.50  10.00
        gpt-4o-mini         0.15   0.60
        o3                  2.00   8.00
        o4-mini             1.10   4.40
        claude-opus-4-1    15.00  75.00
        claude-sonnet-4-5   3.00  15.00
        claude-haiku-4-5    1.00   5.00
        gemini-2.5-pro      1.25  10.00
        gemini-2.5-flash    0.30   2.50
        gemini-2.5-flash-lite 0.10 0.40
        embedded            0      0
        gguf                0      0
    """)


def cost_of(model: str, usage: Usage, prices: Mapping[str, Price]) -> float | None:
    """US dollars, or None where the list has no price for the model.

    A name is looked up without its provider (``openai:``), and falls to the longest listed name it begins with, so
    that a dated version costs what its model does.
    """
    bare = model.rpartition("/")[2].partition(":")[2] or model
    best = ""
    for name in prices:
        begins = any(text == name or (text.startswith(name) and text[len(name)] in "-@:.") for text in (model, bare))
        if begins and len(name) > len(best):
            best = name
    if not best:
        return None
    price = prices[best]
    return (usage.input_tokens * price.input + usage.output_tokens * price.output) / _MILLION
