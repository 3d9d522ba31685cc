"""Operations that are given to the compiler as they are to be: on addresses, or on a few neighbouring numbers as a vector.

Left to itself the compiler does not vectorise loops of sixteen steps over arrays that might overlap, and attention has no
longer ones. Knows addresses and float32, nothing else. Offsets are into flat arrays and are not checked.
`like` is a tuple of any values, as long as the vector: its length is part of its type, so that the compiler knows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

in_compiled_code: Callable[[Callable[..., Any]], Any] = intrinsic
"""What is written below says how to write the code; it is called without the first argument, `typing`."""
FLAGS = ("fast",)
CHAR, INT, LONG, FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()


def place(context: Any, builder: Any, kind: Any, array: Any, offset: Any, vector: Any) -> Any:
    """The address of a vector in a flat array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), vector.as_pointer())


@in_compiled_code
def dot(typing: Any, a: Any, i: Any, b: Any, j: Any, like: Any) -> Any:
    """The scalar product of the numbers at a[i:] and b[j:]."""
    width = len(like)
    vector = ir.VectorType(FLOAT, width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left = builder.load(place(context, builder, signature.args[0], args[0], args[1], vector), align=4)
        right = builder.load(place(context, builder, signature.args[2], args[2], args[3], vector), align=4)
        product = builder.fmul(left, right, flags=FLAGS)
        name = f"llvm.vector.reduce.fadd.v{width}f32"
        kind = ir.FunctionType(FLOAT, [FLOAT, vector])
        total = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        return builder.call(total, [ir.Constant(FLOAT, 0.0), product], fastmath=FLAGS)

    return types.float32(a, types.intp, b, types.intp, like), generate


@in_compiled_code
def add_scaled(typing: Any, a: Any, i: Any, x: Any, b: Any, j: Any, like: Any) -> Any:
    """a[i:] += x * b[j:]."""
    width = len(like)
    vector = ir.VectorType(FLOAT, width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        there = place(context, builder, signature.args[0], args[0], args[1], vector)
        scalar = builder.insert_element(ir.Constant(vector, ir.Undefined), args[2], ir.Constant(INT, 0))
        zeros = ir.Constant(ir.VectorType(INT, width), [0] * width)
        scale = builder.shuffle_vector(scalar, ir.Constant(vector, ir.Undefined), zeros)
        other = builder.load(place(context, builder, signature.args[3], args[3], args[4], vector), align=4)
        product = builder.fmul(scale, other, flags=FLAGS)
        builder.store(builder.fadd(builder.load(there, align=4), product, flags=FLAGS), there, align=4)
        return context.get_dummy_value()

    return types.void(a, types.intp, types.float32, b, types.intp, like), generate


@in_compiled_code
def pointer(typing: Any, address: Any) -> Any:
    """An address as a pointer to float32."""
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], FLOAT.as_pointer())

    return types.CPointer(types.float32)(types.int64), generate  # type: ignore[no-untyped-call]


@in_compiled_code
def sgemm(typing: Any, function: Any, x_transposed: Any, y_transposed: Any, rows: Any, columns: Any, inner: Any, x: Any,
          x_width: Any, y: Any, y_width: Any, accumulate: Any, out: Any, out_width: Any) -> Any:
    """out = x y, or out += x y if `accumulate` is 1; all matrices are stored by rows, x or y is transposed if its flag is 1.

    BLAS reads matrices by columns, so it sees each of them transposed: it is called for out^T = y^T x^T.
    """
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function, x_transposed, y_transposed, rows, columns, inner, x, x_width, y, y_width, accumulate, out, out_width = args

        def stored(value: Any, kind: Any) -> Any:
            there = cgutils.alloca_once(builder, kind)  # type: ignore[no-untyped-call]
            builder.store(value, there)
            return there

        def letter(transposed: Any) -> Any:
            is_transposed = builder.icmp_signed("!=", transposed, ir.Constant(LONG, 0))
            return stored(builder.select(is_transposed, ir.Constant(CHAR, ord("T")), ir.Constant(CHAR, ord("N"))), CHAR)

        def integer(value: Any) -> Any:
            return stored(builder.trunc(value, INT), INT)

        def matrix(value: Any) -> Any:
            return builder.inttoptr(value, FLOAT.as_pointer())

        given = [letter(y_transposed), letter(x_transposed), integer(columns), integer(rows), integer(inner),
                 stored(ir.Constant(FLOAT, 1.0), FLOAT), matrix(y), integer(y_width), matrix(x), integer(x_width),
                 stored(builder.sitofp(accumulate, FLOAT), FLOAT), matrix(out), integer(out_width)]
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in given])
        builder.call(builder.inttoptr(function, kind.as_pointer()), given)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 13), generate
