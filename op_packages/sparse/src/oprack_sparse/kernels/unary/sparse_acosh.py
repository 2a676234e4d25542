"""Kernels of sparse_acosh and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_acosh", dtypes=FLOATS)
def sparse_acosh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """acosh of the values."""
    return x.with_values(ctx.run_op("acosh", {"X": x.values}))


@kernel("sparse_acosh_grad", dtypes=FLOATS)
def sparse_acosh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of acosh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("acosh_grad", given))
