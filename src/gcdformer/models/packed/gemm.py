"""Where BLAS's matrix product is in this process, for compiled code to call it without Python. Does not import numba."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch


@cache
def sgemm_address() -> int | None:
    """The address of torch's own sgemm (Fortran's way to call it, integers of 32 bits); None where torch shows none."""
    for library in sorted(Path(torch.__file__).parent.glob("lib/libtorch_cpu.*")):
        found = getattr(ctypes.CDLL(str(library)), "sgemm_", None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value
    return None
