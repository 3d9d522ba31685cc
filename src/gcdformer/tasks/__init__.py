"""Tasks: what is asked and what the answer is. A task knows integers; it knows no base, token or model."""

from gcdformer.tasks.registry import TASKS, find_task
from gcdformer.tasks.task import Task

__all__ = ["TASKS", "Task", "find_task"]
