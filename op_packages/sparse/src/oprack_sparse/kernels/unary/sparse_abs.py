"""Kernels of sparse_abs and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_abs", dtypes=FLOATS)
def sparse_abs(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """abs of the values."""
    return x.with_values(ctx.run_op("abs", {"X": x.values}))


@kernel("sparse_abs_grad", dtypes=FLOATS)
def sparse_abs_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of abs at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("abs_grad", given))
