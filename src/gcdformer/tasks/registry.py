"""Tasks by name, and tasks from a user's own file."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path

from gcdformer.errors import UserError
from gcdformer.tasks.gcd import Gcd
from gcdformer.tasks.rational import Addition, Comparison, Division, Multiplication, Simplification
from gcdformer.tasks.task import Task

TASKS: dict[str, type[Task]] = {
    "gcd": Gcd,
    "comparison": Comparison,
    "division": Division,
    "addition": Addition,
    "multiplication": Multiplication,
    "simplification": Simplification,
}


def find_task(name: str) -> Task:
    """A task by its name, or `path/to/file.py:Name`. The latter runs that file: it is the user's own code."""
    if name in TASKS:
        return TASKS[name]()
    path, colon, class_name = name.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise UserError(f"unknown task '{name}': the tasks are {', '.join(TASKS)}, or path/to/file.py:Name")
    try:
        return load_task_class(Path(path), class_name)()
    except TypeError as error:
        raise UserError(f"task: {class_name} in {path} cannot be made without arguments: {error}") from error


def load_task_class(path: Path, class_name: str) -> type[Task]:
    if not path.is_file():
        raise UserError(f"task: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"gcdformer_user_task_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"task: {path} does not load: {type(error).__name__}: {reason}") from error
    found = getattr(module, class_name, None)
    if not (isinstance(found, type) and issubclass(found, Task)):
        raise UserError(f"task: {path} has no subclass of gcdformer.Task named '{class_name}'")
    missing = sorted(found.__abstractmethods__) + [f for f in ("name", "inputs") if not hasattr(found, f)]
    if missing:
        raise UserError(f"task: {class_name} in {path} lacks {', '.join(missing)}")
    return found


def task_digest(name: str) -> str | None:
    """SHA-256 of a user's task file, so that a run notices when it changes; None for our own tasks."""
    if name in TASKS:
        return None
    path = Path(name.rpartition(":")[0])
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
