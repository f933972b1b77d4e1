"""Stored conversations: sessions and what was said in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

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
    title: str = ""
    """As a person named it, else how it began; empty where nothing is known of either."""


SessionPlace: TypeAlias = tuple[float, str]
"""A place in the list of sessions: when one was last used, and its id."""


class SessionHistory(Entity):
    """Which messages of a session a run began with: those numbered from ``first`` to ``last``; none when it is 0."""

    session_id: str
    first: int = 0
    last: int = 0


class ConversationStore(Protocol):
    """Sessions and what was said in them."""

    async def messages(
        self, session_id: str, *, last: int | None = None, principal_id: PrincipalFilter = ANY_PRINCIPAL
    ) -> Sequence[Message]:
        """In order; with ``last``, only the latest so many. None of a session that is another principal's."""

    async def history(self, session_id: str, *, last: int | None = None) -> tuple[SessionHistory, Sequence[Message]]:
        """The same messages, and which they are."""

    async def list(
        self,
        *,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        text: str = "",
        after: SessionPlace | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[SessionRow]:
        """Most recently used first; with ``text``, those in whose title or messages each of its words occurs."""

    async def get(self, session_id: str) -> SessionRow | None: ...

    async def rename(
        self,
        session_id: str,
        title: str,
        *,
        by: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
    ) -> bool:
        """Give a session a title of its own. False when there is none of that principal."""

    async def delete(
        self, session_id: str, *, by: str | None = None, principal_id: PrincipalFilter = ANY_PRINCIPAL
    ) -> bool:
        """Forget a session: what was said, its runs, what was allowed in it.

        False, and nothing is forgotten, when there is none of that principal, or one of its runs has not ended.
        """
