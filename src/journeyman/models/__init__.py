"""Language models: one adapter per wire format, and the names by which people ask for them.

Nothing is imported here, so that a program pays only for the adapter it uses.
"""

from typing import TYPE_CHECKING

from journeyman.core.lazy import lazy_names

if TYPE_CHECKING:
    from journeyman.core.model_settings import ModelSettings as ModelSettings
    from journeyman.core.model_settings import Timeouts as Timeouts
    from journeyman.core.protocols import Deltas as Deltas
    from journeyman.core.protocols import ModelRequest as ModelRequest
    from journeyman.core.protocols import ModelResponse as ModelResponse
    from journeyman.core.runs import Price as Price
    from journeyman.models.embedded import EmbeddedModel as EmbeddedModel
    from journeyman.models.gguf import GgufModel as GgufModel
    from journeyman.models.openai import OpenAIModel as OpenAIModel
    from journeyman.models.providers import ProviderModel as ProviderModel
else:
    __getattr__, __dir__ = lazy_names(__name__)
