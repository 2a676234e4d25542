"""Elements picked along a dim, and the gradient of that."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule
from oprack.tensor import ShapeOnly


def picked(x: Array, places: Array, axis: int, keepdim: bool, xp: ArrayModule) -> tuple[Array, Array]:
    """(values, places) from places along an axis, of which there is one for each row; x has one dim at least."""
    values = xp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


def pick_grad(X: ShapeOnly, Indices: Array, Out_grad: Array, *, axis: int, keepdim: bool, xp: ArrayModule) -> Array:
    """Out@GRAD at the places that were picked, 0 elsewhere."""
    if not X.ndim:
        return Out_grad.reshape(()).copy()
    shape = list(X.shape)
    shape[axis] = 1
    grad = xp.zeros(X.shape, Out_grad.dtype)
    places = xp.arange(X.shape[axis]).reshape([-1 if i == axis % X.ndim else 1 for i in range(X.ndim)])
    # each row was picked from once
    return xp.where(places == Indices.reshape(shape), Out_grad.reshape(shape), grad)
