"""Kernel of scale, an op of the pack math, over sparse tensors: the operators with numbers, and gradients of sums."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import SparseTensor
from oprack.types import FLOATS, INTEGERS


@kernel("scale", dtypes=FLOATS | INTEGERS)
def scale_sparse(
    X: SparseTensor, ScaleTensor: Array | None = None, *, scale: float, bias: float, ctx: KernelContext
) -> SparseTensor:
    """The values times a number; a bias would be added to what is not listed, too."""
    if bias != 0:
        raise InvalidArgumentError(
            f"scale: bias is {bias} for {X!r}; expected 0, since what is not listed would not stay zero; "
            "x.to_dense() has all elements"
        )
    return X.with_values(ctx.run_op("scale", {"X": X.values, "ScaleTensor": ScaleTensor}, {"scale": scale}))
