"""Sparse tensors with their elements elsewhere, or added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.types import dtype_enum

if TYPE_CHECKING:
    from oprack import Tensor


def transpose(x: Tensor, perm: Sequence[int]) -> Tensor:
    """Dims in another order; dense dims stay behind the sparse ones."""
    return F.sparse_transpose(x, perm=list(perm))


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The elements in another shape, of which one dim may be -1; 0 keeps the dim of x."""
    return F.sparse_reshape(x, shape=list(shape))


def slice(x: Tensor, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Tensor:
    """The part from starts to before ends along axes; negative numbers count from the end."""
    return F.sparse_slice(x, axes=list(axes), starts=list(starts), ends=list(ends))


def sum(x: Tensor, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdim: bool = False) -> Tensor:
    """Sums along an axis, or of all elements, as a sparse tensor; of CSR along the last axis or of all."""
    along = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    number = -1 if dtype is None else int(dtype_enum(dtype))
    return F.sparse_sum(x, axis=along, dtype=number, keepdim=keepdim)
