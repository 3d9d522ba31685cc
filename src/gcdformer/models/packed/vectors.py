"""Two operations on a few neighbouring numbers, given to the compiler as vectors of a known width.

Left to itself the compiler does not vectorise loops of sixteen steps over arrays that might overlap, and attention has no
longer ones. Knows addresses and float32, nothing else. Offsets are into flat arrays and are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

FLAGS = ("fast",)


@cache
def vector_operations(width: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """dot(a, i, b, j): the scalar product of `width` numbers at a[i:] and b[j:];
    add_scaled(a, i, x, b, j): a[i:] += x * b[j:]."""
    vector = ir.VectorType(ir.FloatType(), width)

    def place(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
        data = context.make_array(kind)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())

    @intrinsic
    def dot(typing: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            left = builder.load(place(context, builder, signature.args[0], args[0], args[1]), align=4)
            right = builder.load(place(context, builder, signature.args[2], args[2], args[3]), align=4)
            product = builder.fmul(left, right, flags=FLAGS)
            kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), vector])
            name = f"llvm.vector.reduce.fadd.v{width}f32"
            total = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            return builder.call(total, [ir.Constant(ir.FloatType(), 0.0), product], fastmath=FLAGS)

        return types.float32(a, types.intp, b, types.intp), generate

    @intrinsic
    def add_scaled(typing: Any, a: Any, i: Any, x: Any, b: Any, j: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            there = place(context, builder, signature.args[0], args[0], args[1])
            scalar = builder.insert_element(ir.Constant(vector, ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
            scale = builder.shuffle_vector(scalar, ir.Constant(vector, ir.Undefined), zeros)
            other = builder.load(place(context, builder, signature.args[3], args[3], args[4]), align=4)
            product = builder.fmul(scale, other, flags=FLAGS)
            builder.store(builder.fadd(builder.load(there, align=4), product, flags=FLAGS), there, align=4)
            return context.get_dummy_value()

        return types.void(a, types.intp, types.float32, b, types.intp), generate

    return dot, add_scaled
