"""Kernels of sparse_square and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_square", dtypes=FLOATS)
def sparse_square(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """square of the values."""
    return x.with_values(ctx.run_op("square", {"X": x.values}))


@kernel("sparse_square_grad", dtypes=FLOATS)
def sparse_square_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of square at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("square_grad", given))
