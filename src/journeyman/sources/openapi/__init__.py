"""APIs that an OpenAPI document describes, as sources of tools.

``document`` reads one and lowers its operations; ``request`` puts arguments where an operation wants them; ``source``
calls, and reads the answers.
"""

from __future__ import annotations

from journeyman.sources.openapi.source import OpenApi

__all__ = ["OpenApi"]
