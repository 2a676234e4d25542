"""Kernels of sparse_tanh and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_tanh", dtypes=FLOATS)
def sparse_tanh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """tanh of the values."""
    return x.with_values(ctx.run_op("tanh", {"X": x.values}))


@kernel("sparse_tanh_grad", dtypes=FLOATS)
def sparse_tanh_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of tanh at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("tanh_grad", given))
