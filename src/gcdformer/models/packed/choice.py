"""Which models the packed code is for, and the threads it runs on. Does not import numba, so that asking costs nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import torch

from gcdformer.models.hooks import has_hooks
from gcdformer.models.interface import Seq2Seq
from gcdformer.models.packed.gemm import sgemm_address
from gcdformer.models.transformer import Transformer


def can_pack(model: Seq2Seq, device: torch.device, precision: str) -> bool:
    """A transformer in float32 on a CPU without hooks, which packed code would pass by; with numba and torch's sgemm."""
    return isinstance(model, Transformer) and not has_hooks(model) and is_packable("transformer", device, precision)


def is_packable(family: str, device: torch.device, precision: str) -> bool:
    """The same before there is a model."""
    return (family == "transformer" and device.type == "cpu" and precision == "float32" and find_spec("numba") is not None
            and sgemm_address() is not None)


def one_thread_each(workers: int) -> ThreadPoolExecutor:
    """Threads whose matrix products do not start threads of their own, and that take denormal numbers for zero."""
    def start() -> None:
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)

    return ThreadPoolExecutor(workers, initializer=start)
