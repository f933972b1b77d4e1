"""On a busy machine the vectors of tools come late: who has nothing else to go by waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from journeyman import tool
from journeyman.app.finding import gap_embedder
from journeyman.choosing import ranking
from journeyman.choosing.ranking import ToolRanking
from journeyman.core.protocols import Vectors


@tool(read_only=True)
def list_orders(customer: str) -> list[str]:
    """List orders. Use to see what a customer has bought."""
    return [customer]


@tool
def cancel_order(order_id: str) -> str:
    """Cancel an order. Use when it is no longer wanted."""
    return order_id


class LateEmbedder:
    """The real one, on a machine that has other work to do first."""

    def __init__(self) -> None:
        embedder = gap_embedder()
        assert embedder is not None
        self._embedder, self.free = embedder, asyncio.Event()
        self.name = embedder.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        await self.free.wait()
        return await self._embedder.embed(texts)


async def test_who_can_weigh_only_a_few_tools_waits_for_the_vectors_and_others_go_by_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranking, "FIRST_SECONDS", 0)
    embedder = LateEmbedder()
    tools = [list_orders.specification, cancel_order.specification]
    late = ToolRanking(embedder=embedder)
    assert (await late.ranked("What has Ada bought?", tools)).by_words

    waiting = asyncio.create_task(late.ranked("What has Ada bought?", tools, patient=True))
    assert (await late.ranked("What has Ada bought?", tools)).by_words
    assert not waiting.done()
    embedder.free.set()
    assert not (await waiting).by_words
    assert (await waiting) == await ToolRanking(embedder=gap_embedder()).ranked("What has Ada bought?", tools)
