"""Kernels of label_smooth."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS


@kernel("label_smooth", place=("cpu", "cuda"), dtypes=FLOATS)
def label_smooth(X: Array, PriorDist: Array | None = None, *, epsilon: float) -> Array:
    kind = X.dtype.type
    if PriorDist is None:
        prior = kind(epsilon / X.shape[-1])
    else:
        prior = kind(epsilon) * PriorDist.reshape(X.shape[-1])
    return kind(1 - epsilon) * X + prior


@kernel("label_smooth_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def label_smooth_grad(Out_grad: Array, *, epsilon: float) -> Array:
    return Out_grad * Out_grad.dtype.type(1 - epsilon)
