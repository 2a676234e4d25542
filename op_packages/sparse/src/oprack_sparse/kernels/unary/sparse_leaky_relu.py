"""Kernels of sparse_leaky_relu and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_leaky_relu", dtypes=FLOATS)
def sparse_leaky_relu(x: SparseTensor, *, alpha: float, ctx: KernelContext) -> SparseTensor:
    """leaky_relu of the values."""
    return x.with_values(ctx.run_op("leaky_relu", {"X": x.values}, {"alpha": alpha}))


@kernel("sparse_leaky_relu_grad", dtypes=FLOATS)
def sparse_leaky_relu_grad(
    x: SparseTensor, out_grad: SparseTensor, *, alpha: float, ctx: KernelContext
) -> SparseTensor:
    """The gradient of leaky_relu at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("leaky_relu_grad", given, {"alpha": alpha}))
