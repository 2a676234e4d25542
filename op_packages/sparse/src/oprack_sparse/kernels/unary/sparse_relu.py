"""Kernels of sparse_relu and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_relu", dtypes=FLOATS)
def sparse_relu(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """relu of the values."""
    return x.with_values(ctx.run_op("relu", {"X": x.values}))


@kernel("sparse_relu_grad", dtypes=FLOATS)
def sparse_relu_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of relu at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("relu_grad", given))
