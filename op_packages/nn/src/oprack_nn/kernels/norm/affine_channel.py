"""Kernels of affine_channel and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_nn.ops._layout import is_channel_last

_PLACES = ("cpu", "cuda")


def _channels(x, layout):
    """(axes of a channel's elements, shape that broadcasts a [C] array against x)."""
    axis = x.ndim - 1 if is_channel_last(layout) else 1
    return tuple(a for a in range(x.ndim) if a != axis), tuple(-1 if a == axis else 1 for a in range(x.ndim))


@kernel("affine_channel", place=_PLACES, dtypes=FLOATS)
def affine_channel(X, Scale, Bias, *, data_layout, xp, out=None):
    _, shape = _channels(X, data_layout)
    out = xp.multiply(X, Scale.reshape(shape), out=out)
    out += Bias.reshape(shape)
    return out


@kernel("affine_channel_grad", place=_PLACES, dtypes=FLOATS)
def affine_channel_grad(X=None, Scale=None, Out_grad=None, *, data_layout, ctx, xp):
    axes, shape = _channels(Out_grad, data_layout)
    grads = {}
    if ctx.wants("X@GRAD"):
        grads["X_grad"] = Out_grad * Scale.reshape(shape)
    if ctx.wants("Scale@GRAD"):
        grads["Scale_grad"] = (Out_grad * X).sum(axis=axes)
    if ctx.wants("Bias@GRAD"):
        grads["Bias_grad"] = Out_grad.sum(axis=axes)
    return grads
