"""Kernels of sparse_expm1 and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_expm1", dtypes=FLOATS)
def sparse_expm1(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """expm1 of the values."""
    return x.with_values(ctx.run_op("expm1", {"X": x.values}))


@kernel("sparse_expm1_grad", dtypes=FLOATS)
def sparse_expm1_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of expm1 at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("expm1_grad", given))
