"""Kernels of relu and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelSpecialization, kernel

from oprack_nn.kernels.activation._family import BOTH, REALS


def _fmax(call: KernelSpecialization) -> Callable[..., Any]:
    return partial(call.xp.fmax, call.xp.zeros((), call.dtypes["X"][0]))


@kernel("relu", place=BOTH, dtypes=REALS, specialize=_fmax)
def relu(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.fmax(X, X.dtype.type(0), out=out)  # NaN becomes 0, as in Paddle


@kernel("relu_grad", place=BOTH, dtypes=REALS)
def relu_grad(Out: Array, Out_grad: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(Out_grad, Out > 0, out=out, dtype=Out.dtype)


@kernel("relu_grad_grad", place=BOTH, dtypes=REALS)
def relu_grad_grad(grad_x_grad: Array, Out: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    return xp.multiply(grad_x_grad, Out > 0, out=out, dtype=Out.dtype)
