"""Which device and how many threads."""

from __future__ import annotations

import os

import torch

from gcdformer.config import MachineSection
from gcdformer.errors import UserError
from gcdformer.training.distributed import local_ranks, world_size


def choose_device(machine: MachineSection) -> torch.device:
    """The device of a configuration; `auto` takes CUDA, then MPS, then the CPU. Sets the number of threads.

    Ranks on one machine share its cores, and each takes a CUDA device of its own.
    """
    torch.set_num_threads(chosen_threads(machine))
    name = machine.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if name == "cuda" and world_size() > 1:
        name = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    if name.startswith("cuda"):
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(name.partition(":")[2] or 0) >= count:
            raise UserError(f"device: {name} is not there; this machine has {count} CUDA devices")
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it CUDA's products are not deterministic
        torch.use_deterministic_algorithms(True, warn_only=True)
    if name == "mps" and not torch.backends.mps.is_available():
        raise UserError("device: mps is not there; use cpu or auto")
    return torch.device(name)


def chosen_threads(machine: MachineSection) -> int:
    """The threads of a configuration, or this rank's share of the cores."""
    return machine.threads or max(1, available_cores() // local_ranks())


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
