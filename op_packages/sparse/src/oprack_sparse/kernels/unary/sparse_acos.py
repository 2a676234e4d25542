"""Kernels of sparse_acos and of its gradient."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import values_at


@kernel("sparse_acos", dtypes=FLOATS)
def sparse_acos(x: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """acos of the values."""
    return x.with_values(ctx.run_op("acos", {"X": x.values}))


@kernel("sparse_acos_grad", dtypes=FLOATS)
def sparse_acos_grad(x: SparseTensor, out_grad: SparseTensor, *, ctx: KernelContext) -> SparseTensor:
    """The gradient of acos at the values."""
    given = {"X": x.values, "Out@GRAD": values_at(out_grad, x)}
    return x.with_values(ctx.run_op("acos_grad", given))
