"""Kernel of sparse_scale."""

from __future__ import annotations

from oprack.kernel import KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS


@kernel("sparse_scale", dtypes=FLOATS | INTEGERS)
def sparse_scale(
    x: SparseTensor, *, scale: float, bias: float, bias_after_scale: bool, ctx: KernelContext
) -> SparseTensor:
    """A line of the values."""
    attrs = {"scale": scale, "bias": bias, "bias_after_scale": bias_after_scale}
    return x.with_values(ctx.run_op("scale", {"X": x.values}, attrs))
