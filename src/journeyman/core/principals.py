"""On whose behalf something happens."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, field_validator

from journeyman.core.data import Entity

PERMISSION = re.compile(r"[A-Za-z0-9_.\-]+(:[A-Za-z0-9_.\-]+)*(:\*)?|\*")


WRITE_ALL = "runs:write"
"""Who has it sees what belongs to others, speaks in their sessions, and cancels, resumes or deletes what is theirs."""


class _Any(Enum):
    PRINCIPAL = "any principal"


ANY_PRINCIPAL: Final = _Any.PRINCIPAL
PrincipalFilter: TypeAlias = str | Literal[_Any.PRINCIPAL] | None
"""Whose rows to list: those of the principal of this id, those of no principal (None), or all (ANY_PRINCIPAL)."""


def check_permissions(values: Iterable[str]) -> frozenset[str]:
    """Permissions look like ``orders:write``; a holder may have ``orders:*`` or ``*``."""
    found = frozenset(values)
    for value in sorted(found):
        if not PERMISSION.fullmatch(value):
            raise ValueError(f"permission {value!r} is not well-formed; write it like 'orders:write' or 'orders:*'")
    return found


class Principal(Entity):
    """A person or a program, and what it may do. No principal means no permissions."""

    id: str = Field(min_length=1)
    permissions: frozenset[str] = frozenset()

    def __init__(self, id: str = "", *, permissions: Iterable[str] = (), **unknown: Any) -> None:
        # Positional `id` reads better. A missing id and unknown fields are accepted here, so that the validator
        # refuses them in its own words.
        super().__init__(**{"id": id, "permissions": permissions, **unknown})

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # see Entity

    @field_validator("permissions", mode="before")
    @classmethod
    def _well_formed(cls, value: Iterable[str]) -> frozenset[str]:
        if isinstance(value, str):
            raise ValueError(f"permissions must be a collection of strings, not the string {value!r}")
        return check_permissions(value)

    def may(self, permission: str) -> bool:
        """Whether this principal holds a permission, itself or through a wildcard such as ``orders:*``."""
        if permission in self.permissions or "*" in self.permissions:
            return True
        parts = permission.split(":")
        return any(":".join([*parts[:i], "*"]) in self.permissions for i in range(1, len(parts)))
