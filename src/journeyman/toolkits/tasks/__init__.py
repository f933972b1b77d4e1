"""Tasks and attachments: a service over a store, and the tools that give it to a model."""

from journeyman.toolkits.tasks.service import TaskService
from journeyman.toolkits.tasks.tools import task_tools

__all__ = ["TaskService", "task_tools"]
