"""Kernels of sparse_atan and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_atan", dtypes=FLOATS)
def sparse_atan(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """atan of the values."""
    return x.with_values(ctx.run_op("atan", {"X": x.values}))


@kernel("sparse_atan_grad", dtypes=FLOATS)
def sparse_atan_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of atan at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("atan_grad", given))
