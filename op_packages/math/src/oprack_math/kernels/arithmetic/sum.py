"""Kernels of sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.device import dense_rows
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows

from oprack_math.kernels._numeric import accumulator
from oprack_math.kernels._sets import BOTH, NUMBERS


def _added(arrays: Sequence[Array], xp: ArrayModule) -> Array:
    """Sum of dense arrays of one shape; those without elements add nothing."""
    filled = [a for a in arrays if a.size] or arrays[:1]
    first = filled[0]
    if len(filled) == 1:
        return first.copy()
    work = accumulator(first.dtype)
    total = xp.add(first, filled[1], dtype=work)
    for a in filled[2:]:
        total = xp.add(total, a, out=total if total.shape == first.shape and total.ndim else None)
    return total.astype(first.dtype, copy=False)


def _dense(x: Array | LoDTensor | SelectedRows, xp: ArrayModule) -> Array:
    if isinstance(x, SelectedRows):
        return dense_rows(x, xp)
    return x.array if isinstance(x, LoDTensor) else x


@kernel("sum", place=BOTH, dtypes=NUMBERS, deterministic={"cpu"})
def sum_dense(X: list[Array], *, xp: ArrayModule) -> Array:
    """Sum of tensors, among which there may be SelectedRows."""
    return _added([_dense(x, xp) for x in X if x is not None], xp)


@kernel("sum", place=BOTH, dtypes=NUMBERS)
def sum_rows(X: list[SelectedRows], *, xp: ArrayModule) -> Array | SelectedRows:
    """SelectedRows; a dense tensor among them makes the result dense.

    On the host each row is listed once, in ascending order; a device does not wait for the number of rows.
    """
    given = [x for x in X if x is not None]
    if not all(isinstance(x, SelectedRows) for x in given):
        return _added([_dense(x, xp) for x in given], xp)
    rows = xp.concatenate([x.rows for x in given])
    value = xp.concatenate([x.value for x in given])
    total = SelectedRows(rows, value, given[0].height, place=given[0].place, check=False)
    return total.merged() if xp is np else total


@kernel("sum", place=BOTH, dtypes=NUMBERS)
def sum_arrays(X: list[LoDTensorArray], *, xp: ArrayModule) -> LoDTensorArray:
    """Arrays added element by element; where one has no element, the others count."""
    result = LoDTensorArray()
    given = [a for a in X if a is not None]
    for i in range(max(map(len, given))):
        tensors = [a[i] for a in given if i < len(a) and a[i] is not None]
        if tensors:
            total = _added([t.array for t in tensors], xp)
            result.append(
                LoDTensor(total, [list(level) for level in tensors[0].lod], place=tensors[0].place, check=False)
            )
        else:
            result.append(None)
    return result
