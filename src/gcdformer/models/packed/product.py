"""The matrix product for CPUs with AVX-512, written for the compiler: tiles of the result stay in registers.

MKL, torch's BLAS, uses only half the vector width on AMD's CPUs; there this is about twice as fast. Elsewhere BLAS is used
(`vectors.sgemm`): on Intel's it is up to half as fast again as this. Knows addresses and float32, nothing else: no bounds
are checked. Sums over the inner dimension run in one order whatever the number of threads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from numba import carray, types  # type: ignore[attr-defined]

from gcdformer.models.packed.vectors import FLOAT, INT, LONG, in_compiled_code, pointer

LANES = 16
"""float32 in a vector."""
PANEL = 2 * LANES
"""Columns of a tile."""
TILE_ROWS = 12
"""Rows of a tile: 24 of the 32 registers hold it, and two more a row of the panel."""
TILE, FEW, ONE = (False,) * TILE_ROWS, (False,) * 4, (False,)
"""Tuples whose lengths are compiled in: how many rows are computed together."""


@cache
def beats_blas() -> bool:
    """Whether this CPU has AVX-512 and is AMD's. Not measured: a run that is resumed has to find the same product."""
    try:
        return get_host_cpu_name().startswith("znver") and bool(get_host_cpu_features().get("avx512f"))
    except RuntimeError:  # llvm does not know this kind of CPU
        return False


@in_compiled_code
def multiply_tile(typing: Any, rows: Any, x: Any, x_row: Any, x_inner: Any, panel: Any, inner: Any, out: Any, out_row: Any,
                  accumulate: Any) -> Any:
    """out[r, c] = sum over k of x[r, k] panel[k, c], or += if `accumulate` is 1, for R rows and all columns of a panel.

    x[r, k] is r * x_row + k * x_inner numbers after the address x; panel is (inner, PANEL), 64-byte aligned; out[r] is
    r * out_row numbers after the address out. R is the length of the tuple `rows`.
    """
    height = len(rows)
    vector, mask = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
    zero, undefined, first = ir.Constant(vector, [0.0] * LANES), ir.Constant(vector, ir.Undefined), ir.Constant(INT, 0)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, x_row, x_inner, panel, inner, out, out_row, accumulate = args[1:]
        x, panel, out = (builder.inttoptr(address, FLOAT.as_pointer()) for address in (x, panel, out))

        def number(value: int) -> Any:
            return ir.Constant(LONG, value)

        def vector_at(address: Any, offset: Any) -> Any:
            return builder.bitcast(builder.gep(address, [offset]), vector.as_pointer())

        fma = builder.module.globals.get("llvm.fma.v16f32") or ir.Function(
            builder.module, ir.FunctionType(vector, [vector] * 3), "llvm.fma.v16f32")
        row_offsets = [builder.mul(x_row, number(r)) for r in range(height)]
        before, loop, after = builder.basic_block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(LONG)
        k.add_incoming(number(0), before)
        sums = [[builder.phi(vector), builder.phi(vector)] for _ in range(height)]
        panel_row = builder.mul(k, number(PANEL))
        ys = [builder.load(vector_at(panel, builder.add(panel_row, number(half * LANES))), align=64) for half in range(2)]
        for r in range(height):
            scalar = builder.load(builder.gep(x, [builder.add(builder.mul(k, x_inner), row_offsets[r])]), align=4)
            same = builder.shuffle_vector(builder.insert_element(undefined, scalar, first), undefined,
                                          ir.Constant(mask, [0] * LANES))
            for half in range(2):
                total = sums[r][half]
                total.add_incoming(zero, before)
                total.add_incoming(builder.call(fma, [same, ys[half], total]), loop)
        following = builder.add(k, number(1))
        k.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, inner), loop, after)

        builder.position_at_end(after)
        is_added = builder.icmp_signed("!=", accumulate, number(0))
        for r in range(height):
            for half in range(2):
                place = vector_at(out, builder.add(builder.mul(out_row, number(r)), number(half * LANES)))
                old = builder.select(is_added, builder.load(place, align=4), zero)
                total, = (value for value, block in sums[r][half].incomings if block is loop)
                builder.store(builder.fadd(old, total), place, align=4)
        return context.get_dummy_value()

    return types.void(rows, *[types.int64] * 8), generate


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def fill_panel(panel, y, y_width, y_transposed, first, columns, inner):  # type: ignore[no-untyped-def]
    """panel[k, c] = y[k, first + c], or y[first + c, k] if y is transposed; panel (inner, PANEL)."""
    if y_transposed:
        for c in range(columns):
            for k in range(inner):
                panel[k * PANEL + c] = y[(first + c) * y_width + k]
    elif columns == PANEL:  # the same as below, but of constant width, so that it is unrolled
        for k in range(inner):
            for c in range(PANEL):
                panel[k * PANEL + c] = y[k * y_width + first + c]
    else:
        for k in range(inner):
            for c in range(columns):
                panel[k * PANEL + c] = y[k * y_width + first + c]


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def multiply_panel(x, x_row, x_inner, panel, inner, out, out_row, rows, accumulate):  # type: ignore[no-untyped-def]
    """out = x panel, or out += x panel; x (rows, inner), panel (inner, PANEL), out (rows, PANEL)."""
    r = 0
    while rows - r >= TILE_ROWS:
        multiply_tile(TILE, x + 4 * r * x_row, x_row, x_inner, panel, inner, out + 4 * r * out_row, out_row, accumulate)
        r += TILE_ROWS
    while rows - r >= 4:
        multiply_tile(FEW, x + 4 * r * x_row, x_row, x_inner, panel, inner, out + 4 * r * out_row, out_row, accumulate)
        r += 4
    while rows - r >= 1:
        multiply_tile(ONE, x + 4 * r * x_row, x_row, x_inner, panel, inner, out + 4 * r * out_row, out_row, accumulate)
        r += 1


@numba.njit(nogil=True, error_model="numpy", forceinline=True)
def product(x_transposed, y_transposed, rows, columns, inner, x, x_width, y, y_width,  # type: ignore[no-untyped-def]
            accumulate, out, out_width, scratch):
    """out = x y, or out += x y if `accumulate` is 1; all matrices are stored by rows, x or y is transposed if its flag is 1.

    x, y and out are addresses; the widths are those of what is stored. `scratch`: (inner + rows, PANEL) numbers,
    64-byte aligned.
    """
    x_row, x_inner = (1, x_width) if x_transposed else (x_width, 1)
    numbers = carray(pointer(scratch), ((inner + rows) * PANEL,))
    stored = carray(pointer(y), ((columns if y_transposed else inner) * y_width,))
    result = carray(pointer(out), (rows * out_width,))
    for start in range(0, columns, PANEL):
        width = min(PANEL, columns - start)
        fill_panel(numbers, stored, y_width, y_transposed, start, width, inner)
        if width == PANEL:
            multiply_panel(x, x_row, x_inner, scratch, inner, out + 4 * start, out_width, rows, accumulate)
        else:  # the last columns by way of a whole panel
            place = inner * PANEL
            multiply_panel(x, x_row, x_inner, scratch, inner, scratch + 4 * place, PANEL, rows, 0)
            for r in range(rows):
                for c in range(width):
                    old = result[r * out_width + start + c] if accumulate else numba.float32(0)
                    result[r * out_width + start + c] = old + numbers[place + r * PANEL + c]
