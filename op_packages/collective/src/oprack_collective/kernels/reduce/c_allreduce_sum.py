"""Kernel of c_allreduce_sum."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.parallel.sparse_rows import gather_rows
from oprack.tensor import SelectedRows

from oprack_collective.kernels._ring import NUMBERS, PLACES, REALS, ring


@kernel("c_allreduce_sum", place=PLACES, dtypes=NUMBERS)
def c_allreduce_sum(X: Array, *, ring_id: int) -> Array:
    return ring(ring_id).all_reduce(X, "sum")


@kernel("c_allreduce_sum", dtypes=REALS)
def c_allreduce_sum_rows(X: SelectedRows, *, ring_id: int) -> SelectedRows:
    return gather_rows(X, ring(ring_id))
