"""Kernels of ops of two sparse tensors, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCooTensor, SparseTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sparse.kernels._patterns import (
    coordinates,
    like,
    lookup,
    merged,
    numbered,
    same_pattern,
    sparse_dims,
    values_at,
)


# shared ---------------------------------------------------------------------------------------------------------------
# What kernels of two sparse tensors share.
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


# sparse_add -----------------------------------------------------------------------------------------------------------
@kernel("sparse_add", dtypes=FLOATS | INTEGERS)
def sparse_add(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The sum of what either lists."""
    return combined("sparse_add", x, y, np.add)


@kernel("sparse_add", dtypes=FLOATS | INTEGERS)
def sparse_add_to_values(x: SparseCooTensor, y: Array) -> SparseCooTensor:
    """A dense tensor added to each value."""
    return x.with_values(x.values + y)


@kernel("sparse_add_grad", dtypes=FLOATS)
def sparse_add_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g.copy(), lambda g, a, b: g.copy())


@kernel("sparse_add_grad", dtypes=FLOATS)
def sparse_add_to_values_grad(x: SparseCooTensor, y: Array, out_grad: SparseCooTensor) -> tuple[SparseCooTensor, Array]:
    """By x and by the dense y."""
    gradient = values_at(out_grad, x)
    return x.with_values(gradient.copy()), gradient.reshape(-1, y.shape[0]).sum(axis=0, dtype=y.dtype)


# sparse_divide --------------------------------------------------------------------------------------------------------
MOST = 1 << 28


@kernel("sparse_divide", dtypes=FLOATS | INTEGERS)
def sparse_divide(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The quotients of all elements, since 0/0 is not zero."""
    require_alike("sparse_divide", x, y)
    dims = sparse_dims(x)
    if math.prod(dims) > MOST:
        raise InvalidArgumentError(
            f"sparse_divide: x is {x!r}, and the result lists all {math.prod(dims)} quotients, since 0/0 is not zero; "
            "expected a smaller tensor; divide the values of two tensors of one pattern instead"
        )
    indices = np.indices(dims, np.int64).reshape(len(dims), -1)
    return like(x, indices, _quotient(lookup(x, indices), lookup(y, indices)), x.shape)


def _quotient(a: Array, b: Array) -> Array:
    return np.divide(a, b) if a.dtype.kind == "f" else np.trunc(a / b).astype(a.dtype)


@kernel("sparse_divide_grad", dtypes=FLOATS)
def sparse_divide_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g / b, lambda g, a, b: -g * a / (b * b))


# sparse_multiply ------------------------------------------------------------------------------------------------------
@kernel("sparse_multiply", dtypes=FLOATS | INTEGERS)
def sparse_multiply(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The product of what either lists."""
    return combined("sparse_multiply", x, y, np.multiply)


@kernel("sparse_multiply_grad", dtypes=FLOATS)
def sparse_multiply_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g * b, lambda g, a, b: g * a)


# sparse_subtract ------------------------------------------------------------------------------------------------------
@kernel("sparse_subtract", dtypes=FLOATS | INTEGERS)
def sparse_subtract(x: SparseTensor, y: SparseTensor) -> SparseTensor:
    """The difference of what either lists."""
    return combined("sparse_subtract", x, y, np.subtract)


@kernel("sparse_subtract_grad", dtypes=FLOATS)
def sparse_subtract_grad(x: SparseTensor, y: SparseTensor, out_grad: SparseTensor) -> tuple[SparseTensor, SparseTensor]:
    """By x and by y."""
    return gradients(x, y, out_grad, lambda g, a, b: g.copy(), lambda g, a, b: -g)


# sum ------------------------------------------------------------------------------------------------------------------
# Kernel of sum, an op of the pack math, over sparse tensors: their gradients add up by it.
@kernel("sum", dtypes=FLOATS | INTEGERS)
def sum_of_sparse(X: list[SparseTensor]) -> SparseTensor:
    """The sum; of gradients, which list the same elements, it is that of their values."""
    first, *others = X
    if all(same_pattern(first, x) for x in others):
        return first.with_values(reduce(np.add, (x.values for x in others), first.values.copy()))
    return reduce(lambda x, y: combined("sum", x, y, np.add), others, first)
