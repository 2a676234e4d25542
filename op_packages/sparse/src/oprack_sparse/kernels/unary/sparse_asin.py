"""Kernels of sparse_asin and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_asin", dtypes=FLOATS)
def sparse_asin(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """asin of the values."""
    return x.with_values(ctx.run_op("asin", {"X": x.values}))


@kernel("sparse_asin_grad", dtypes=FLOATS)
def sparse_asin_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of asin at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("asin_grad", given))
