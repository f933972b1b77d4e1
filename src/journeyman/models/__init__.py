"""Language models: one adapter per wire format, and the names by which people ask for them.

Nothing is imported here, so that a program pays only for the adapter it uses.
"""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.core.protocols import Deltas as Deltas
    from journeyman.core.protocols import ModelRequest as ModelRequest
    from journeyman.core.protocols import ModelResponse as ModelResponse
    from journeyman.core.runs import Price as Price
    from journeyman.models.openai import OpenAIModel as OpenAIModel
else:
    __getattr__, __dir__ = lazy_names(__name__)
