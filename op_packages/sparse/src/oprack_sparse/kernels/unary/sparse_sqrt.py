"""Kernels of sparse_sqrt and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_sqrt", dtypes=FLOATS)
def sparse_sqrt(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """sqrt of the values."""
    return x.with_values(ctx.run_op("sqrt", {"X": x.values}))


@kernel("sparse_sqrt_grad", dtypes=FLOATS)
def sparse_sqrt_grad(out: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of sqrt at the values."""
    given = {"Out": out.values, "Out@GRAD": values_at(out_grad, out)}
    return out.with_values(ctx.run_op("sqrt_grad", given))
