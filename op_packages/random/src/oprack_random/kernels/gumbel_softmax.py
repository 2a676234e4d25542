"""Kernels of gumbel_softmax and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


@kernel("gumbel_softmax", place=("cpu", "cuda"), dtypes=FLOATS)
def gumbel_softmax(
    X: Array, *, temperature: float, hard: bool, axis: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    """softmax of the disturbed logarithms, or 1 at its greatest element."""
    noise = xp.asarray(ctx.generator(0).gumbel(size=tuple(X.shape)).astype(X.dtype))
    if not X.size:
        return X.copy()
    disturbed = (X + noise) / X.dtype.type(temperature)
    if hard and X.ndim:
        places = xp.arange(X.shape[axis]).reshape([-1 if i == axis % X.ndim else 1 for i in range(X.ndim)])
        return (places == xp.expand_dims(disturbed.argmax(axis=axis), axis)).astype(X.dtype)
    along = axis if X.ndim else None
    raised = xp.exp(disturbed - disturbed.max(axis=along, keepdims=True))
    return raised / raised.sum(axis=along, keepdims=True)


@kernel("gumbel_softmax_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def gumbel_softmax_grad(Out: Array, Out_grad: Array, *, temperature: float, axis: int) -> Array:
    """The gradient of softmax, divided by the temperature."""
    along = axis if Out.ndim else None
    inner = (Out * Out_grad).sum(axis=along, keepdims=True)
    return Out * (Out_grad - inner) / Out.dtype.type(temperature)
