"""Kernel of sparse_isnan."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS


@kernel("sparse_isnan", dtypes=FLOATS | INTEGERS)
def sparse_isnan(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """Whether the values are NaN."""
    return x.with_values(ctx.run_op("isnan_v2", {"X": x.values}))
