"""Elements picked along a dim, and the gradient of that."""

from __future__ import annotations

from typing import Any


def picked(x: Any, places: Any, axis: int, keepdim: bool, xp: Any) -> tuple[Any, Any]:
    """(values, places) from places along an axis, of which there is one for each row; x has one dim at least."""
    values = xp.take_along_axis(x, places, axis)
    return (values, places) if keepdim else (values.squeeze(axis), places.squeeze(axis))


def pick_grad(X: Any, Indices: Any, Out_grad: Any, *, axis: int, keepdim: bool, xp: Any) -> Any:
    """Out@GRAD at the places that were picked, 0 elsewhere."""
    if not X.ndim:
        return Out_grad.reshape(()).copy()
    shape = list(X.shape)
    shape[axis] = 1
    grad = xp.zeros(X.shape, Out_grad.dtype)
    places = xp.arange(X.shape[axis]).reshape([-1 if i == axis % X.ndim else 1 for i in range(X.ndim)])
    # each row was picked from once
    return xp.where(places == Indices.reshape(shape), Out_grad.reshape(shape), grad)
