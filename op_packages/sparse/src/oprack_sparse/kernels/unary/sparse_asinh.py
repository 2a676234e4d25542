"""Kernels of sparse_asinh and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_asinh", dtypes=FLOATS)
def sparse_asinh(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """asinh of the values."""
    return x.with_values(ctx.run_op("asinh", {"X": x.values}))


@kernel("sparse_asinh_grad", dtypes=FLOATS)
def sparse_asinh_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of asinh at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("asinh_grad", given))
