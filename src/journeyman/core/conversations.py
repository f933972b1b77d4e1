"""Stored conversations: sessions and what was said in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from journeyman.core.data import Entity
from journeyman.core.messages import Message
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter


class SessionRow(Entity):
    """A stored conversation."""

    id: str
    principal_id: str | None
    created_at: float
    updated_at: float
    message_count: int


class ConversationStore(Protocol):
    """Sessions and what was said in them."""

    async def messages(self, session_id: str, *, last: int | None = None) -> Sequence[Message]:
        """In order; with ``last``, only the latest so many."""

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[SessionRow]:
        """Most recently used first."""

    async def get(self, session_id: str) -> SessionRow | None: ...

    async def delete(self, session_id: str) -> bool:
        """Forget a session: what was said, its ended runs, what was allowed in it. False when there is none."""
