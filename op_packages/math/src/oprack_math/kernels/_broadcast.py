"""Fluid's broadcasting on arrays, and its adjoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from oprack.kernel import Array, KernelSpecialization
from oprack.tensor import ShapeOnly

from oprack_math.kernels._numeric import accumulator
from oprack_math.ops._broadcast import aligned

_X = TypeVar("_X", Array, ShapeOnly)
_Y = TypeVar("_Y", Array, ShapeOnly)


def broadcasting(ufunc: str) -> Callable[..., Any]:
    """`specialize` of an element-wise kernel: with axis -1 Fluid's broadcasting is that of the ufunc of this name."""

    def specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
        return getattr(call.xp, ufunc) if call.attrs["axis"] == -1 else None

    return specialize


def align(X: _X, Y: _Y, axis: int, op_type: str = "elementwise") -> tuple[_X, _Y]:
    """Views of both arrays at one rank, ready for NumPy's broadcasting."""
    if X.ndim == Y.ndim:
        return X, Y
    x, y = aligned(X.shape, Y.shape, axis, op_type)
    return X.reshape(x), Y.reshape(y)


def usable(out: Array | None, x: Array, y: Array) -> Array | None:
    """`out` (X's own buffer) when the result of x and y has its shape, else None."""
    if out is not None and all(b in (a, 1) for a, b in zip(x.shape, y.shape, strict=True)):
        return out.reshape(x.shape)
    return None


def sum_to(gradient: Array, operand: Array | ShapeOnly, like: Array | ShapeOnly) -> Array:
    """Sum `gradient` over the dims along which `operand` (as aligned) was broadcast; result in the shape of `like`."""
    if gradient.shape == operand.shape:
        return gradient if gradient.shape == like.shape else gradient.reshape(like.shape)
    axes = tuple(i for i, n in enumerate(operand.shape) if n == 1 and gradient.shape[i] != 1)
    total = gradient.sum(axis=axes, dtype=accumulator(gradient.dtype))
    return total.astype(gradient.dtype, copy=False).reshape(like.shape)
