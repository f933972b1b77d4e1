"""Tasks as the task tools keep them, not what a run is given (that is ``TaskInput``)."""

from journeyman.core.tasks import Attachment, Task

__all__ = ["Attachment", "Task"]
