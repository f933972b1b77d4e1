"""What a child process gets of this program's environment: where things are, and nothing that gives access."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from journeyman.core.words import WordLists

known = WordLists("journeyman.sensitive", "environment.txt")
FAMILIES = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "NVPL_")
"""Language, and how many threads numeric libraries take."""
PROXIES = frozenset(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"])
"""Passed on, in either case, unless they carry a user's name or password."""


child_output: Callable[[], int] = lambda: 2  # noqa: E731 - standard error
"""The file that tools in processes of their own print to; the command line puts something in between."""


def clean_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that a child process may have."""
    given = os.environ if environment is None else environment
    return {name: value for name, value in given.items() if _may_pass(name, value)}


def _may_pass(name: str, value: str) -> bool:
    if name.upper() in PROXIES:
        return "@" not in value
    return name in known.passed_on or name.startswith(FAMILIES)
