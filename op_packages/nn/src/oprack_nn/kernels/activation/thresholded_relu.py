"""Kernels of thresholded_relu and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


@kernel("thresholded_relu", place=BOTH, dtypes=REALS)
def thresholded_relu(X: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(X, X > threshold, out=out, dtype=X.dtype)


@kernel("thresholded_relu_grad", place=BOTH, dtypes=REALS)
def thresholded_relu_grad(
    X: Array, Out_grad: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule
) -> Array:
    return xp.multiply(Out_grad, X > threshold, out=out, dtype=X.dtype)
