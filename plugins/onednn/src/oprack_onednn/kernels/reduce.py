"""reduce_sum and reduce_mean over the last dims; over others oneDNN is slow.

Its maximum is not used: it passes over NaN, and the maximum of minus infinities is the least finite number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from oprack.kernel import Array

from oprack_onednn import _c
from oprack_onednn.declare import onednn_kernel
from oprack_onednn.descs import primitive_desc
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import BUFFERS
from oprack_onednn.native import Attributes, MemoryDesc
from oprack_onednn.primitive_chain import THREAD, PrimitiveChain

# Elements that are summed to one: beyond, NumPy's sum in pairs is the more exact one.
_LONGEST = 1 << 14


def build(rows: int, columns: int, algorithm: int) -> PrimitiveChain:
    """Chain for [rows, columns] to [rows]."""
    matrix, column = MemoryDesc.strided((rows, columns)), MemoryDesc.strided((rows, 1))
    desc = primitive_desc("reduction", LIBRARY.engine, algorithm, matrix, column, 0.0, 0.0, Attributes())
    chain = PrimitiveChain()
    chain.add(desc, {_c.SRC: chain.input(matrix), _c.DST: chain.output(column)})
    return chain


def apply(x: Array, dims: Sequence[int], keep_dim: bool, reduce_all: bool, algorithm: int) -> Array:
    rank = x.ndim
    if not x.size or not rank or not x.flags.c_contiguous:
        return NotImplemented
    reduced = range(rank) if reduce_all or not dims else sorted(d % rank for d in dims)
    first = reduced[0]
    columns = math.prod(x.shape[first:])
    if list(reduced) != list(range(first, rank)) or not 2 <= columns <= _LONGEST:
        return NotImplemented
    if not first and not keep_dim:
        return NotImplemented  # NumPy's result is a scalar then, and a plan counts on that
    rows = x.size // columns
    chain = THREAD.primitive(("reduction", rows, columns, algorithm), build, rows, columns, algorithm)
    if chain is None:
        return NotImplemented
    y = BUFFERS.take((*x.shape[:first], *[1] * (rank - first if keep_dim else 0)))
    chain.run(x, y)
    return y


@onednn_kernel("reduce_sum", min_numel="binary")
def reduce_sum(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, out_dtype: int) -> Array:
    if out_dtype >= 0:
        return NotImplemented
    return apply(X, dim, keep_dim, reduce_all, _c.REDUCTION_SUM)


@onednn_kernel("reduce_mean", min_numel="binary")
def reduce_mean(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool) -> Array:
    return apply(X, dim, keep_dim, reduce_all, _c.REDUCTION_MEAN)
