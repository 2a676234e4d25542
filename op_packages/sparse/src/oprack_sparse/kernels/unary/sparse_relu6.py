"""Kernels of sparse_relu6 and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_relu6", dtypes=FLOATS)
def sparse_relu6(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """relu6 of the values."""
    return x.with_values(ctx.run_op("relu6", {"X": x.values}))


@kernel("sparse_relu6_grad", dtypes=FLOATS)
def sparse_relu6_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of relu6 at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("relu6_grad", given))
