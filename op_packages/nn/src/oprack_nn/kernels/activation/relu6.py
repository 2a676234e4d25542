"""Kernels of relu6 and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, clip, inside


@kernel("relu6", place=BOTH, dtypes=REALS)
def relu6(X, *, threshold, out=None, xp):
    return clip(X, 0.0, threshold, out, xp)


@kernel("relu6_grad", place=BOTH, dtypes=REALS)
def relu6_grad(Out, Out_grad, *, threshold, out=None, xp):
    return inside(Out, Out_grad, 0.0, threshold, out, xp)
