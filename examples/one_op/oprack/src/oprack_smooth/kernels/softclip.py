"""Kernels of softclip and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


@kernel("softclip", place=("cpu", "cuda"), dtypes=FLOATS)
def softclip(X: Array, *, limit: float, xp: ArrayModule) -> Array:
    return limit * xp.tanh(X / limit)


@kernel("softclip_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def softclip_grad(Out: Array, Out_grad: Array, *, limit: float) -> Array:
    return Out_grad * (1 - (Out / limit) ** 2)
