"""Examples as arrays: the counter-based stream, the test sets, token batches, files. Knows no model and no torch."""

from gcdformer.data.problem import Problem
from gcdformer.data.stream import Stream

__all__ = ["Problem", "Stream"]
