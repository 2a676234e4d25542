"""Fluid's broadcasting on arrays, and its adjoint."""

from __future__ import annotations

import numpy as np

from oprack_math.ops._elementwise import aligned

BOTH = ("cpu", "cuda")
# NaN, infinities and overflow are results like any other, as in Paddle.


def broadcasting(ufunc):
    """`prepare` of an element-wise kernel: with axis -1 Fluid's broadcasting is that of the ufunc of this name."""

    def prepare(call):
        return getattr(call.xp, ufunc) if call.attrs["axis"] == -1 else None

    return prepare


def align(X, Y, axis, op_type="elementwise"):
    """Views of both arrays at one rank, ready for NumPy's broadcasting."""
    if X.ndim == Y.ndim:
        return X, Y
    x, y = aligned(X.shape, Y.shape, axis, op_type)
    return X.reshape(x), Y.reshape(y)


def usable(out, x, y):
    """`out` (X's own buffer) when the result of x and y has its shape, else None."""
    if out is not None and all(b in (a, 1) for a, b in zip(x.shape, y.shape, strict=True)):
        return out.reshape(x.shape)
    return None


def accumulator(dtype):
    """dtype in which sums of `dtype` are taken: float32 for 16-bit floats."""
    return np.dtype(np.float32) if dtype.name in ("float16", "bfloat16") else dtype


def sum_to(gradient, operand, like):
    """Sum `gradient` over the dims along which `operand` (as aligned) was broadcast; result in the shape of `like`."""
    if gradient.shape == operand.shape:
        return gradient if gradient.shape == like.shape else gradient.reshape(like.shape)
    axes = tuple(i for i, n in enumerate(operand.shape) if n == 1 and gradient.shape[i] != 1)
    total = gradient.sum(axis=axes, dtype=accumulator(gradient.dtype))
    return total.astype(gradient.dtype, copy=False).reshape(like.shape)


def conjugate(x, xp):
    """Complex conjugate; real arrays as they are."""
    return xp.conj(x) if x.dtype.kind == "c" else x
