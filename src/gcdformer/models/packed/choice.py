"""Which models the packed code is for, the threads it runs on, and where BLAS's matrix product is for it to call.

Does not import numba, so that asking costs nothing.
"""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch

from gcdformer.models.hooks import has_hooks
from gcdformer.models.interface import Seq2Seq
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


@cache
def sgemm_address() -> int | None:
    """The address of torch's own sgemm (Fortran's way to call it, integers of 32 bits); None where torch shows none."""
    for library in sorted(Path(torch.__file__).parent.glob("lib/libtorch_cpu.*")):
        function = getattr(ctypes.CDLL(str(library)), "sgemm_", None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None
