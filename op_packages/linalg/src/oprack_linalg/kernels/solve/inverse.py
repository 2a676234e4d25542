"""Kernels of inverse and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH, singular


@kernel("inverse", place=BOTH, dtypes=FLOATS)
def inverse(Input: Array, *, xp: ArrayModule) -> Array:
    """The inverse of each matrix."""
    with singular("inverse", "Input"):
        return xp.linalg.inv(Input)


@kernel("inverse_grad", place=BOTH, dtypes=FLOATS)
def inverse_grad(Output: Array, Output_grad: Array) -> Array:
    """-Output^T Output@GRAD Output^T."""
    turned = Output.swapaxes(-1, -2)
    return -(turned @ Output_grad @ turned)
