"""Which files of tasks may be run because a run folder names them.

A task of one's own is code. Naming it on the command line or in Python is consent, and is remembered by the file's
SHA-256 in one text file of the user's; a run folder that names a file with another hash is not obeyed. So a folder that
came from elsewhere cannot bring code with it.
"""

from __future__ import annotations

import os
from pathlib import Path

from gcdformer.errors import UserError
from gcdformer.tasks.registry import TASKS, task_digest

_this_process: set[str] = set()


def trusted_path() -> Path:
    """$XDG_STATE_HOME/gcdformer/trusted-tasks, by default below ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path("~/.local/state").expanduser()) / "gcdformer" / "trusted-tasks"


def trusted_digests() -> set[str]:
    try:
        return set(trusted_path().read_text(encoding="utf-8", errors="replace").split()) | _this_process
    except OSError:
        return set(_this_process)


def trust_task(name: str) -> None:
    """The user named this task: remember the hash of its file, for this process even where nothing can be written."""
    digest = task_digest(name)
    if digest is None or digest in trusted_digests():
        return
    _this_process.add(digest)
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
