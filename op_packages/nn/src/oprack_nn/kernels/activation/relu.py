"""Kernels of relu and its gradients."""

from __future__ import annotations

from functools import partial

from oprack.kernel import kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


def _fmax(call):
    return partial(call.xp.fmax, call.xp.zeros((), call.dtypes["X"][0]))


@kernel("relu", place=BOTH, dtypes=REALS, specialize=_fmax)
def relu(X, *, out=None, xp):
    return xp.fmax(X, X.dtype.type(0), out=out)  # NaN becomes 0, as in Paddle


@kernel("relu_grad", place=BOTH, dtypes=REALS)
def relu_grad(Out, Out_grad, *, out=None, xp):
    return xp.multiply(Out_grad, Out > 0, out=out, dtype=Out.dtype)


@kernel("relu_grad_grad", place=BOTH, dtypes=REALS)
def relu_grad_grad(grad_x_grad, Out, *, out=None, xp):
    return xp.multiply(grad_x_grad, Out > 0, out=out, dtype=Out.dtype)
