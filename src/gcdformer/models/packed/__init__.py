"""The transformer written out by hand for float32 on a CPU: the same mathematics as `transformer.py`, in less time.

Rows are packed without padding, matrix products write into rooms that are used again, everything between them is one
compiled loop, and no graph is recorded: the way back is written out too. All of it is written on a tape when the model
is built (forward, then back for training or generate for answers) and run by one compiled call a batch, without Python.
`transformer.py` stays the reference that tests compare with; `can_pack` says which models this is for.
Only forward, back, generate and what they use import numba.
"""

from gcdformer.models.packed.choice import can_pack, is_packable, one_thread_each
from gcdformer.models.packed.rows import PackedBatch, PackedRows

__all__ = ["PackedBatch", "PackedRows", "can_pack", "is_packable", "one_thread_each"]
