"""Kernels of relu6 and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, clip, inside


@kernel("relu6", place=BOTH, dtypes=REALS)
def relu6(X: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return clip(X, 0.0, threshold, out, xp)


@kernel("relu6_grad", place=BOTH, dtypes=REALS)
def relu6_grad(Out: Array, Out_grad: Array, *, threshold: float, out: Array | None = None, xp: ArrayModule) -> Array:
    return inside(Out, Out_grad, 0.0, threshold, out, xp)
