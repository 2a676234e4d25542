"""Products of matrices and vectors, which the standard has in its main namespace and in linalg."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oprack import Tensor
from oprack import functional as F
from oprack.errors import InvalidArgumentError

from oprack_array_api._operands import axes_of, named, numel, place_of, together
from oprack_array_api.creation import zeros
from oprack_array_api.dtypes import category
from oprack_array_api.manipulation import moveaxis, permute_dims, reshape


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Multiplies matrices in the last two dims, by op matmul_v2; leading dims broadcast.

    Args:
        x1: A tensor [..., n, k], or a vector [k].
        x2: A tensor [..., k, m], or a vector [k].

    Returns:
        Tensor [..., n, m], without the dim of a vector.
    """
    return F.matmul_v2(*together(x1, x2, "matmul"))


def matrix_transpose(x: Any, /) -> Tensor:
    """Swaps the last two dims.

    Args:
        x: Matrices in the last two dims.

    Returns:
        Tensor with these dims swapped.

    Raises:
        InvalidArgumentError: x has less than two dims.
    """
    if x.ndim < 2:
        raise InvalidArgumentError(f"matrix_transpose: {named(x)} has {x.ndim} dims; expected two at least")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def tensordot(x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """The sum of products over dims of both.

    Args:
        x1: A tensor.
        x2: Another one.
        axes: How many of the last dims of x1 and the first of x2, or the dims of each.

    Returns:
        The tensor: the other dims of x1, then those of x2.

    Raises:
        InvalidArgumentError: The sizes along axes differ.
    """
    x, y = together(x1, x2, "tensordot")
    if isinstance(axes, int):
        ours, theirs = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    else:
        ours, theirs = axes_of(axes[0], x.ndim, "tensordot"), axes_of(axes[1], y.ndim, "tensordot")
    if [x.shape[a] for a in ours] != [y.shape[a] for a in theirs]:
        raise InvalidArgumentError(f"tensordot: {named(x)} and {named(y)} differ along axes {axes}")
    left = [i for i in range(x.ndim) if i not in ours]
    right = [i for i in range(y.ndim) if i not in theirs]
    shape = (*(x.shape[i] for i in left), *(y.shape[i] for i in right))
    n = math.prod(x.shape[a] for a in ours)
    if not numel(x) or not numel(y):
        return zeros(shape, dtype=x.dtype, device=place_of(x))
    a = reshape(permute_dims(x, (*left, *ours)), (-1, n))
    b = reshape(permute_dims(y, (*theirs, *right)), (n, -1))
    return reshape(F.matmul_v2(a, b), shape)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Computes the inner products of vectors along a dim, the first conjugated; the other dims broadcast.

    Args:
        x1: A tensor.
        x2: A tensor with the same size along axis.
        axis: The dim along which vectors lie, negative.

    Returns:
        Tensor without that dim.

    Raises:
        InvalidArgumentError: Sizes along axis differ, or axis is not negative or out of range.
    """
    x, y = together(x1, x2, "vecdot")
    if not -min(x.ndim, y.ndim) <= axis < 0:
        raise InvalidArgumentError(f"vecdot: axis is {axis}; expected a number from {-min(x.ndim, y.ndim)} to -1")
    if x.shape[axis] != y.shape[axis]:
        raise InvalidArgumentError(f"vecdot: {named(x)} and {named(y)} differ along axis {axis}")
    a, b = moveaxis(x, axis, -1), moveaxis(y, axis, -1)
    if category(a.dtype) == "complex floating":
        a = F.conj(a)
    a, b = reshape(a, (*a.shape[:-1], 1, a.shape[-1])), reshape(b, (*b.shape, 1))
    found = F.matmul_v2(a, b)
    return reshape(found, found.shape[:-2])
