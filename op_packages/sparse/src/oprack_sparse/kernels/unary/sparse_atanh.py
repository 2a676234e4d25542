"""Kernels of sparse_atanh and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_atanh", dtypes=FLOATS)
def sparse_atanh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """atanh of the values."""
    return x.with_values(ctx.run_op("atanh", {"X": x.values}))


@kernel("sparse_atanh_grad", dtypes=FLOATS)
def sparse_atanh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of atanh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("atanh_grad", given))
