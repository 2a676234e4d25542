"""Kernels of affine_channel and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.ops._layout import is_channel_last

_PLACES = ("cpu", "cuda")


def _channels(x: Array, layout: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(axes of a channel's elements, shape that broadcasts a [C] array against x)."""
    axis = x.ndim - 1 if is_channel_last(layout) else 1
    return tuple(a for a in range(x.ndim) if a != axis), tuple(-1 if a == axis else 1 for a in range(x.ndim))


@kernel("affine_channel", place=_PLACES, dtypes=FLOATS)
def affine_channel(
    X: Array, Scale: Array, Bias: Array, *, data_layout: str, xp: ArrayModule, out: Array | None = None
) -> Array:
    _, shape = _channels(X, data_layout)
    out = xp.multiply(X, Scale.reshape(shape), out=out)
    out += Bias.reshape(shape)
    return out


@kernel("affine_channel_grad", place=_PLACES, dtypes=FLOATS)
def affine_channel_grad(
    X: Array | None = None,
    Scale: Array | None = None,
    Out_grad: Array | None = None,
    *,
    data_layout: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    axes, shape = _channels(Out_grad, data_layout)
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = Out_grad * Scale.reshape(shape)
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (Out_grad * X).sum(axis=axes)
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = Out_grad.sum(axis=axes)
    return grads
