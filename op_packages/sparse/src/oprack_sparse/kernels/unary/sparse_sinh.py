"""Kernels of sparse_sinh and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_sinh", dtypes=FLOATS)
def sparse_sinh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """sinh of the values."""
    return x.with_values(ctx.run_op("sinh", {"X": x.values}))


@kernel("sparse_sinh_grad", dtypes=FLOATS)
def sparse_sinh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of sinh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("sinh_grad", given))
