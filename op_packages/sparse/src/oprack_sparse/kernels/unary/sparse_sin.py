"""Kernels of sparse_sin and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_sin", dtypes=FLOATS)
def sparse_sin(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """sin of the values."""
    return x.with_values(ctx.run_op("sin", {"X": x.values}))


@kernel("sparse_sin_grad", dtypes=FLOATS)
def sparse_sin_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of sin at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("sin_grad", given))
