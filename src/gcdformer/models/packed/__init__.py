"""The transformer written out by hand for float32 on a CPU: the same mathematics as `transformer.py`, in less time.

Rows are packed without padding, matrix products write into buffers that are used again, everything between them is one
compiled loop, and no autograd graph is recorded. When the model is built, a program of instructions is emitted (`forward`,
then `backward` for training or `generate` for decoding); one compiled call runs it for a batch, without Python.
`transformer.py` stays the reference that tests compare with; `can_pack` says which models this is for.
Only forward, backward, generate and what they use import numba.
"""

from gcdformer.models.packed.choice import can_pack, is_packable, one_thread_each
from gcdformer.models.packed.rows import PackedBatch, PackedRows

__all__ = ["PackedBatch", "PackedRows", "can_pack", "is_packable", "one_thread_each"]
