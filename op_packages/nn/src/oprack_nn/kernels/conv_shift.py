"""Kernels of conv_shift and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


def _turned(x: Array, width: int, sign: int, xp: ArrayModule) -> Array:
    """[B, M, width]: at j the element sign * (j - h) further around the circle."""
    at = xp.arange(x.shape[1])[:, None] + sign * (xp.arange(width) - width // 2)
    return x[:, at % max(x.shape[1], 1)]


@kernel("conv_shift", place=_PLACES, dtypes=FLOATS)
def conv_shift(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """One product of each row's windows with its filter."""
    return xp.matmul(_turned(X, Y.shape[1], 1, xp), Y[:, :, None])[..., 0]


@kernel("conv_shift_grad", place=_PLACES, dtypes=FLOATS)
def conv_shift_grad(X: Array, Y: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Array]:
    """The same with X or Y exchanged for the gradient."""
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = xp.matmul(_turned(Out_grad, Y.shape[1], -1, xp), Y[:, :, None])[..., 0]
    if ctx.wants("Y@GRAD"):
        grads["Y_grad"] = xp.matmul(Out_grad[:, None], _turned(X, Y.shape[1], 1, xp))[:, 0]
    return grads
