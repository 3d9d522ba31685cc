"""The Ray launcher: each trial a Ray task with its CPU and GPU needs, on a cluster that is there or one started here.

A task is an ordinary training session on shared storage. If its worker or its node is lost, the trial is queued again and
resumes elsewhere, from its last checkpoint. If this process dies, Ray ends its tasks; the same command resumes.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, final

from gcdformer.config import Config
from gcdformer.errors import MissingExtra, UserError
from gcdformer.sweeps.launcher import Launcher
from gcdformer.sweeps.plan import Planned
from gcdformer.sweeps.sweep import Needs
from gcdformer.sweeps.trial import Ending, run_trial
from gcdformer.training.device import available_cores
from gcdformer.training.signals import EXIT_INTERRUPTED, SIGNALS, Interrupted

LOCALHOST = "127.0.0.1"
PROGRESS_SECONDS = 5.0  # shared storage is slower than a disk, and there may be hundreds of trials
SMALLEST_STORE = 80 * 2**20  # bytes; trials pass nothing through Ray's object store


def make_ready(address: str | None) -> None:
    """Import Ray with the settings that it reads at that moment; nothing else may import it before."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # 15 by default: beside any other work a trial hardly gets a turn
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None or address.rpartition(":")[0] in (LOCALHOST, "localhost"):
        # Read when Ray is imported. Else Ray replaces 127.0.0.1 by the machine's address and listens on all of them.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        importlib.import_module("ray")
    except ImportError:
        raise MissingExtra("ray", "sweep") from None


def connect(address: str | None) -> None:
    """Join a cluster, or start one on this machine that listens on 127.0.0.1 only."""
    make_ready(address)
    import ray
    start = partial(ray.init, log_to_driver=False, logging_level=logging.ERROR)
    if address is None:
        start = partial(start, address="local", num_cpus=available_cores(), include_dashboard=False,
                        object_store_memory=SMALLEST_STORE, _node_ip_address=LOCALHOST)
        problem = "ray: no cluster could be started on this machine"
    else:
        start = partial(start, address=address)
        problem = f"address: no Ray cluster answers at {address}"
        check_address(address)
    try:
        with own_signals():
            start()
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise UserError(f"{problem}: {(str(error).splitlines() or [type(error).__name__])[0]}") from None


Handlers = dict[signal.Signals, Any]


def handlers() -> Handlers:
    """What this process does on the signals that ask for a stop."""
    return {name: signal.getsignal(name) for name in SIGNALS}


def set_handlers(ours: Handlers) -> None:
    if threading.current_thread() is threading.main_thread():  # in another, neither we nor Ray can change them
        for name, handler in ours.items():
            signal.signal(name, handler)


@contextmanager
def own_signals() -> Iterator[None]:
    """`ray.init` takes SIGTERM for itself, and ends by `SystemExit` if one comes meanwhile; then signals are ours again."""
    ours = handlers()
    try:
        yield
    except SystemExit:
        raise Interrupted("SIGTERM") from None
    finally:
        set_handlers(ours)


def check_address(address: str) -> None:
    """A quick `UserError` if nothing listens at HOST:PORT; Ray itself tries for a minute."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, OverflowError) as error:
            raise UserError(f"address: no Ray cluster answers at {address}: {error}") from None


def slots_for(needs: Needs) -> int:
    """How many trials the cluster holds at a time; a `UserError` if no node of it could ever hold one."""
    import ray
    every = ray.nodes()  # type: ignore[no-untyped-call]
    slots = places([node["Resources"] for node in every if node["Alive"]], needs)
    if not slots:
        raise UserError(f"needs: no node of the cluster has {needs.cpus} CPUs and {needs.gpus:g} GPUs free for a trial")
    return slots


def places(nodes: list[dict[str, float]], needs: Needs) -> int:
    """How many trials fit on some nodes, given what each of them has."""
    def on(node: dict[str, float]) -> int:
        return int(min(node.get("CPU", 0) / needs.cpus, node.get("GPU", 0) / needs.gpus if needs.gpus else math.inf))

    return sum(map(on, nodes))


def disconnect() -> None:
    """Leave the cluster; one that was started here is stopped."""
    import ray
    ray.shutdown()


def go_to(folder: str) -> None:
    """Files that a configuration names relative to the driver's folder are found there, if this node has it too."""
    if Path(folder).is_dir():
        os.chdir(folder)


def trial_task(config: str, out: str, here: str) -> tuple[int, str]:
    """What runs on a node; the configuration is JSON."""
    go_to(here)
    ending = run_trial(Config.parse(json.loads(config)), Path(out), every=PROGRESS_SECONDS)
    return ending.code, ending.reason


@final
class RayLauncher(Launcher):
    """Tasks. Ray queues them and places them where their needs are met."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address
        self.slots = 100_000  # all are started at once: the queue is Ray's
        self.tasks: dict[Any, Planned] = {}

    def __enter__(self) -> RayLauncher:
        connect(self.address)
        return self

    def __exit__(self, *error: object) -> None:
        disconnect()

    def at_once(self, needs: Needs) -> int:
        return slots_for(needs)

    def start(self, trial: Planned) -> None:
        import ray
        needs = trial.needs
        # No retries of Ray's own: whether a lost trial resumes is decided, and counted, in one place for all launchers.
        task = ray.remote(num_cpus=needs.cpus, num_gpus=needs.gpus, max_retries=0)(trial_task)
        reference = task.options(name=trial.name).remote(trial.config.model_dump_json(), str(trial.path.absolute()),
                                                         str(Path.cwd()))
        self.tasks[reference] = trial

    def wait(self, seconds: float) -> list[tuple[Planned, Ending]]:
        import ray
        if not self.tasks:
            return []
        ready, _ = ray.wait(list(self.tasks), num_returns=len(self.tasks), timeout=seconds, fetch_local=False)
        return [(self.tasks.pop(reference), ending_of(reference)) for reference in ready]

    def ask_to_stop(self) -> None:
        import ray
        for reference in self.tasks:
            ray.cancel(reference, force=False, recursive=False)


def ending_of(reference: Any) -> Ending:
    """How a task ended; a lost worker or node has no exit code."""
    import ray
    from ray import exceptions
    try:
        code, reason = ray.get(reference)
        return Ending(code, reason)
    except exceptions.TaskCancelledError:
        return Ending(EXIT_INTERRUPTED, "stopped before it began, or while it did")
    except exceptions.RayTaskError as error:
        return Ending(1, " ".join(str(error.cause).split())[-300:])
    except exceptions.RayError as error:
        return Ending(-1, f"lost: {type(error).__name__}")
