"""Kernels of brelu and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_nn.kernels.activation._family import BOTH, REALS, clip, inside


@kernel("brelu", place=BOTH, dtypes=REALS)
def brelu(X, *, t_min, t_max, out=None, xp):
    return clip(X, t_min, t_max, out, xp)


@kernel("brelu_grad", place=BOTH, dtypes=REALS)
def brelu_grad(X, Out_grad, *, t_min, t_max, out=None, xp):
    return inside(X, Out_grad, t_min, t_max, out, xp)
