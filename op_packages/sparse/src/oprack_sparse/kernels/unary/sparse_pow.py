"""Kernels of sparse_pow and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_pow", dtypes=FLOATS)
def sparse_pow(x: SparseTensor, *, factor: float, ctx: KernelContext) -> SparseTensor:
    """pow of the values."""
    return x.with_values(ctx.run_op("pow", {"X": x.values}, {"factor": factor}))


@kernel("sparse_pow_grad", dtypes=FLOATS)
def sparse_pow_grad(x: SparseTensor, out_grad: SparseTensor, *, factor: float, ctx: KernelContext) -> SparseTensor:
    """The gradient of pow at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("pow_grad", given, {"factor": factor}))
