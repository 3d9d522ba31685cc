"""Which device, how many threads, and several processes that train one run (`torchrun -m gcdformer train …`).

Rank r of n takes its rows of the same global batch; the loss is a mean over the target tokens of the whole batch,
whatever the parts, so that 1 and n ranks see the same examples and take the same steps but for rounding. Rank 0 evaluates
and writes; what the ranks decide (signals, limits, horizon) they decide together. Knows batches, not GCDs.
"""

from __future__ import annotations

import gc
import importlib
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

from gcdformer.config import MachineSection
from gcdformer.errors import UserError

Result = TypeVar("Result")
PATIENCE = timedelta(hours=2)  # ranks wait for rank 0 while it evaluates


@dataclass(frozen=True)
class Ranks:
    """The processes of a run. One alone by default: then every method is trivial."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def total(self, value: float) -> float:
        """The sum over all ranks."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=collective_device())
        dist.all_reduce(shared)
        return float(shared)

    def largest(self, *values: float) -> list[float]:
        """The largest of each value over the ranks, the same for all of them."""
        if self.size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=collective_device())
        dist.all_reduce(shared, dist.ReduceOp.MAX)
        return [float(value) for value in shared.tolist()]

    def by_first(self, work: Callable[[], Result]) -> Result:
        """What rank 0 gets from this work, on all ranks; an exception of it too."""
        if self.size == 1:
            return work()
        box: list[Any] = [None, None]
        if self.first:
            try:
                box[0] = work()
            except Exception as error:
                box[1] = error
        dist.broadcast_object_list(box, src=0)
        if box[1] is not None:
            raise box[1]
        return cast(Result, box[0])


def cuts(rows: int, parts: int) -> list[tuple[int, int]]:
    """Where each of the parts of these rows begins and ends; they differ by one row at most."""
    return [(rows * part // parts, rows * (part + 1) // parts) for part in range(parts)]


def local_ranks() -> int:
    """How many ranks share this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if world_size() > 1 else 1


def world_size() -> int:
    try:
        return int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        raise UserError(f"WORLD_SIZE: the number of ranks, got '{os.environ['WORLD_SIZE']}'") from None


def is_first_rank() -> bool:
    """Whether this process is the one that speaks, before any rank has joined."""
    return world_size() == 1 or os.environ.get("RANK", "0") == "0"


def collective_device() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def in_ranks(device: torch.device, work: Callable[[Ranks], Result]) -> Result:
    """What the work returns on this rank; the ranks that torchrun (or SLURM's srun) started are joined while it runs.

    nccl on CUDA, gloo elsewhere. Work is a function, not a block, because all it holds of the group must be gone before the
    group is: a DDP module that is freed after `destroy_process_group` hangs about one time in five. When the function has
    returned its frame is gone; when it has raised, the frames that the traceback keeps are cleared.
    """
    if world_size() == 1 or dist.is_initialized():
        return work(Ranks() if world_size() == 1 else Ranks(dist.get_rank(), dist.get_world_size()))
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise UserError(f"{missing[0]}: must be set with WORLD_SIZE {world_size()}; torchrun does it")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    # An optimiser would import it later, and a group that lives then outlives its end: its threads may ask for the
    # interpreter while that ends, which aborts the process.
    importlib.import_module("torch._dynamo")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        return work(Ranks(dist.get_rank(), dist.get_world_size()))
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        gc.collect()  # DDP is part of reference cycles
        dist.destroy_process_group()


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
