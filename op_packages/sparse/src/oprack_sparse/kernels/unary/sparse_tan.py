"""Kernels of sparse_tan and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_tan", dtypes=FLOATS)
def sparse_tan(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """tan of the values."""
    return x.with_values(ctx.run_op("tan", {"X": x.values}))


@kernel("sparse_tan_grad", dtypes=FLOATS)
def sparse_tan_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of tan at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("tan_grad", given))
