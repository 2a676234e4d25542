"""Kernels of sparse_log1p and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_log1p", dtypes=FLOATS)
def sparse_log1p(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """log1p of the values."""
    return x.with_values(ctx.run_op("log1p", {"X": x.values}))


@kernel("sparse_log1p_grad", dtypes=FLOATS)
def sparse_log1p_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of log1p at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("log1p_grad", given))
