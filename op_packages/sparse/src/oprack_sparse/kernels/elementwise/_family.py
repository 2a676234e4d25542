"""What kernels of two sparse tensors share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.tensor import SparseTensor

from oprack_sparse.kernels._patterns import coordinates, like, merged, numbered, same_pattern, sparse_dims, values_at


def require_alike(op: str, x: SparseTensor, y: SparseTensor) -> None:
    """Refuse tensors of two layouts, or with other sparse dims."""
    if type(x) is not type(y) or sparse_dims(x) != sparse_dims(y):
        raise InvalidArgumentError(
            f"{op}: x is {x!r}, y is {y!r}; expected one layout and the same sparse dims; convert one of them"
        )


def combined(op: str, x: SparseTensor, y: SparseTensor, function: Callable[[Array, Array], Array]) -> SparseTensor:
    """A function of the elements that x or y lists; what the other one lacks is zero.

    Args:
        op: The op, for errors.
        x: A tensor.
        y: A tensor of its layout and shape.
        function: The function of two arrays.

    Returns:
        A tensor in their layout, each element listed once and sorted by coordinates.
    """
    require_alike(op, x, y)
    dims = sparse_dims(x)
    a, b = coordinates(x), coordinates(y)
    numbers = numbered(dims, a, b)
    (p, x_values, x_first), (q, y_values, y_first) = merged(numbers[0], x.values), merged(numbers[1], y.values)
    both = np.union1d(p, q)
    left, right = np.zeros((2, len(both), *x.values.shape[1:]), x.values.dtype)
    indices = np.empty((len(a), len(both)), np.int64)
    for found, values, given, first, into in ((p, x_values, a, x_first, left), (q, y_values, b, y_first, right)):
        at = np.searchsorted(both, found)
        into[at] = values
        indices[:, at] = given[:, first]
    return like(x, indices, function(left, right), x.shape)


def gradients(
    x: SparseTensor, y: SparseTensor, out_grad: SparseTensor, by_x: Callable[..., Array], by_y: Callable[..., Array]
) -> tuple[SparseTensor, SparseTensor]:
    """Gradients of both, each over the pattern of its tensor.

    Args:
        x: The first tensor.
        y: The second tensor.
        out_grad: The gradient of the result.
        by_x: The gradient of x as a function of (the result's gradient, x, y).
        by_y: The gradient of y.

    Returns:
        Both gradients.
    """
    if same_pattern(x, y):
        g = values_at(out_grad, x)
        return x.with_values(by_x(g, x.values, y.values)), y.with_values(by_y(g, x.values, y.values))
    return (
        x.with_values(by_x(values_at(out_grad, x), x.values, values_at(y, x))),
        y.with_values(by_y(values_at(out_grad, y), values_at(x, y), y.values)),
    )
