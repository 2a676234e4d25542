"""Sparse tensors with their elements elsewhere, or added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.types import dtype_enum

if TYPE_CHECKING:
    from oprack import Tensor


def transpose(x: Tensor, perm: Sequence[int]) -> Tensor:
    """Reorders the dims; dense dims stay behind the sparse ones: op sparse_transpose.

    Args:
        x: A sparse tensor.
        perm: The dims of x in their new order.

    Returns:
        A sparse tensor.
    """
    return F.sparse_transpose(x, perm=list(perm))


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Gives the elements another shape: op sparse_reshape.

    Args:
        x: A sparse tensor.
        shape: The sizes; one may be -1, the size that is left over, and 0 keeps that of x.

    Returns:
        A sparse tensor.
    """
    return F.sparse_reshape(x, shape=list(shape))


def slice(x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Tensor:
    """Cuts out a part: op sparse_slice.

    Args:
        x: A sparse tensor.
        axes: The dims to cut.
        starts: The first place along each of them; negative ones count from the end.
        ends: The place behind the last along each of them; negative ones count from the end.

    Returns:
        A sparse tensor.
    """
    return F.sparse_slice(x, axes=list(axes), starts=list(starts), ends=list(ends))


def sum(x: Tensor, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdim: bool = False) -> Tensor:
    """Adds up elements: op sparse_sum.

    Args:
        x: A sparse tensor.
        axis: The dim or dims, of CSR the last one; None: all.
        dtype: The dtype of the sums; None: that of x, int64 for integers and bools.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        A sparse tensor.
    """
    along = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    number = -1 if dtype is None else int(dtype_enum(dtype))
    return F.sparse_sum(x, axis=along, dtype=number, keepdim=keepdim)
