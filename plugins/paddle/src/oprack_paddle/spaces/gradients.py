"""paddle.autograd: gradients, matrices of derivatives, and rules of users."""

from __future__ import annotations

from typing import Any

import oprack
from oprack import PyLayer as _PyLayer
from oprack.eager_tensor.from_above import FROM_ABOVE


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool = False) -> None:
    """Add the gradients of tensors to those of the leaves that they were computed from."""
    outputs = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    starts = grad_tensors if isinstance(grad_tensors, list | tuple) else [grad_tensors] * len(outputs)
    starts = [oprack.ones_like(o) if g is None else g for o, g in zip(outputs, starts, strict=True)]
    FROM_ABOVE["backward"](outputs, starts, retain_graph, False)


class PyLayerContext:
    """What forward keeps for backward."""


PyLayer = _PyLayer
__all__ = ["PyLayer"]


def _rows(y: Any, x: Any, create_graph: bool) -> Any:
    """The gradients of each element of a vector."""
    found = []
    for i in range(int(y.size)):
        one = y.reshape([-1])[i]
        (grad,) = oprack.grad([one], [x], retain_graph=True, create_graph=create_graph, allow_unused=True)
        found.append(oprack.zeros_like(x) if grad is None else grad)
    return oprack.stack([g.reshape([-1]) for g in found], axis=0)


def _of_pairs(make: Any, ys: Any, xs: Any) -> Any:
    several_y, several_x = isinstance(ys, list | tuple), isinstance(xs, list | tuple)
    rows = [[make(y, x) for x in (xs if several_x else [xs])] for y in (ys if several_y else [ys])]
    found = [tuple(r) if several_x else r[0] for r in rows]
    return tuple(found) if several_y else found[0]


def jacobian(ys: Any, xs: Any, batch_axis: Any = None) -> Any:
    """The derivatives of each element of ys with respect to each element of xs: [elements of ys, elements of xs]."""

    def of_one(y: Any, x: Any) -> Any:
        if batch_axis is None:
            return _rows(y, x, True)
        wide = y.reshape([y.shape[0], -1])
        columns = []
        for j in range(wide.shape[1]):
            (grad,) = oprack.grad([wide[:, j].sum()], [x], retain_graph=True, create_graph=True, allow_unused=True)
            columns.append((oprack.zeros_like(x) if grad is None else grad).reshape([x.shape[0], -1]))
        return oprack.stack(columns, axis=1)

    return _of_pairs(of_one, ys, xs)


def hessian(ys: Any, xs: Any, batch_axis: Any = None) -> Any:
    """The second derivatives of one number with respect to each pair of elements of xs."""
    several = isinstance(xs, list | tuple)
    inputs = list(xs) if several else [xs]
    firsts = oprack.grad([ys.sum()], inputs, create_graph=True, allow_unused=True)
    rows = []
    for first, x in zip(firsts, inputs, strict=True):
        first = oprack.zeros_like(x) if first is None else first
        rows.append(jacobian(first, tuple(inputs) if several else xs, batch_axis))
    return tuple(rows) if several else rows[0]
