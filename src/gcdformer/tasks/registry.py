"""Tasks by name, tasks from a user's own file, and which of those files may be run.

A task of one's own is code. Naming it on the command line or in Python is consent, and is remembered by the file's
SHA-256 in one text file of the user's; a run folder that names a file with another hash is not obeyed. So a folder that
came from elsewhere cannot bring code with it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
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
_trusted_here: set[str] = set()
"""Digests that were trusted in this process, where the user's file cannot be written."""


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
    task = getattr(module, class_name, None)
    if not (isinstance(task, type) and issubclass(task, Task)):
        raise UserError(f"task: {path} has no subclass of gcdformer.Task named '{class_name}'")
    missing = sorted(task.__abstractmethods__) + [field for field in ("name", "inputs") if not hasattr(task, field)]
    if missing:
        raise UserError(f"task: {class_name} in {path} lacks {', '.join(missing)}")
    return task


def task_digest(name: str) -> str | None:
    """SHA-256 of a user's task file, so that a run notices when it changes; None for our own tasks."""
    if name in TASKS:
        return None
    path = Path(name.rpartition(":")[0])
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def trusted_path() -> Path:
    """$XDG_STATE_HOME/gcdformer/trusted-tasks, by default below ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path("~/.local/state").expanduser()) / "gcdformer" / "trusted-tasks"


def trusted_digests() -> set[str]:
    try:
        return set(trusted_path().read_text(encoding="utf-8", errors="replace").split()) | _trusted_here
    except OSError:
        return set(_trusted_here)


def trust_task(name: str) -> None:
    """The user named this task: remember the hash of its file, for this process even where nothing can be written."""
    digest = task_digest(name)
    if digest is None or digest in trusted_digests():
        return
    _trusted_here.add(digest)
    path = trusted_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{digest}\n")
    except OSError:
        return  # a home that cannot be written: the next process asks again


def require_trusted(name: str, source: Path) -> None:
    """Refuse a task's file that a run folder names and the user never did."""
    digest = task_digest(name)
    if name in TASKS or digest is None or digest in trusted_digests():
        return
    raise UserError(f"{source}: names the task {name}, which is code that was not used here before; read it, and to "
                    f"allow it name it yourself once: gcdformer describe --no-timing --task {name}")
