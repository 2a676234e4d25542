"""Kernels of hard_sigmoid and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, clip, inside


@kernel("hard_sigmoid", place=BOTH, dtypes=REALS)
def hard_sigmoid(X: Array, *, slope: float, offset: float, out: Array | None = None, xp: ArrayModule) -> Array:
    kind = X.dtype.type
    y = xp.empty_like(X) if out is None else out
    xp.multiply(X, kind(slope), out=y)
    y += kind(offset)
    return clip(y, 0.0, 1.0, y, xp)


@kernel("hard_sigmoid_grad", place=BOTH, dtypes=REALS)
def hard_sigmoid_grad(Out: Array, Out_grad: Array, *, slope: float, xp: ArrayModule) -> Array:
    return inside(Out, Out_grad, 0.0, 1.0, None, xp) * Out.dtype.type(slope)
