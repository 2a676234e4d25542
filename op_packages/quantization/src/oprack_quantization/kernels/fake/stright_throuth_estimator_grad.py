"""Kernel of stright_throuth_estimator_grad."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS


@kernel("stright_throuth_estimator_grad", place=("cpu", "cuda"), dtypes=FLOATS, view=True)
def stright_throuth_estimator_grad(Out_grad: Array) -> Array:
    """The gradient as it is."""
    return Out_grad
