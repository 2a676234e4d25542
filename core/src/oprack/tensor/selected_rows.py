"""SelectedRows: some rows of a large matrix, such as the gradient of an embedding table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.tensor.place import CPUPlace, Place
from oprack.tensor.sparse_tensor import SparseValue


def _row_numbers(rows: Any) -> np.ndarray:
    array = np.asarray(rows)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"SelectedRows: rows are {array.dtype}; expected integers")
    return array.astype(np.int64, copy=False).reshape(-1)


# How many values of each row are added in passes over all rows at once; the values beyond these are reduced per row.
_ROUNDS = 8


def merge_rows(rows: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List each distinct row once, with the sum of its values.

    This is much faster than np.add.at, which adds the elements one at a time.

    Args:
        rows: Integers [n].
        value: [n, ...].

    Returns:
        (distinct rows in ascending order, the sum of each one's values).
    """
    ordered, order = _sort(rows)
    is_first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    counts = np.diff(first, append=len(ordered))
    merged = value.take(order[first], axis=0)
    # Round k adds the k-th value of every row that has one: few passes over long arrays instead of one step per row.
    for k in range(1, min(_ROUNDS, int(counts.max(initial=0)))):
        has_kth = np.flatnonzero(counts > k)
        merged[has_kth] += value.take(order[first[has_kth] + k], axis=0)
    long = np.flatnonzero(counts > _ROUNDS)
    if len(long):
        rest = counts[long] - _ROUNDS
        starts = np.cumsum(rest) - rest
        positions = np.arange(int(rest.sum())) + np.repeat(first[long] + _ROUNDS - starts, rest)
        merged[long] += np.add.reduceat(value.take(order[positions], axis=0), starts, axis=0, dtype=value.dtype)
    return ordered[first], merged


def _sort(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort stably; returns (rows in ascending order, the position each had before)."""
    bits = len(rows).bit_length()
    # Row number and position must fit into one signed int64.
    largest = max(int(rows.max(initial=0)), -int(rows.min(initial=0)))
    if rows.dtype != np.int64 or largest.bit_length() + bits > 62:
        order = np.argsort(rows, kind="stable")
        return rows[order], order
    # Sorting keys that combine row and position, which are distinct, is several times as fast as a stable argsort.
    keys = rows << bits
    keys |= np.arange(len(rows))
    keys.sort()
    return keys >> bits, keys & ((1 << bits) - 1)


class SelectedRows(SparseValue):
    """A matrix of `height` rows, of which row `rows[i]` is `value[i]`; the values of a row listed twice add up.

    Args:
        rows: Int64 [n], in any order.
        value: [n, ...].
        height: Number of rows of the dense matrix.
        place: The place whose memory holds rows and values; default: the CPU.
        check: Whether to check the rows against values and height.
        shared: Whether another variable or the caller may see this memory, so that ops must not write to it in place.

    Raises:
        InvalidArgumentError: When the number of rows and of values differ or a row lies outside the height.
    """

    __slots__ = ("height", "rows", "value")

    def __init__(
        self,
        rows: Any,
        value: Any,
        height: int,
        *,
        place: Place | None = None,
        check: bool = True,
        shared: bool = False,
    ) -> None:
        self.rows = _row_numbers(rows) if not hasattr(rows, "get") else rows
        self.value = value if hasattr(value, "dtype") else np.asarray(value)
        self.height = int(height)
        self.place = place or CPUPlace()
        self.shared = shared
        if check:
            if len(self.rows) != (self.value.shape[0] if self.value.ndim else -1):
                raise InvalidArgumentError(
                    f"SelectedRows: {len(self.rows)} rows but value has shape {list(self.value.shape)}; "
                    "expected one value per row in its first dim"
                )
            if len(self.rows) and not (0 <= int(self.rows.min()) and int(self.rows.max()) < self.height):
                raise InvalidArgumentError(
                    f"SelectedRows: rows lie in [{int(self.rows.min())}, {int(self.rows.max())}] but height is "
                    f"{self.height}; expected 0 <= row < height"
                )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the dense matrix: [height, ...]."""
        return (self.height, *self.value.shape[1:])

    @property
    def elements(self) -> Any:
        """The value, under the name that all sparse values have for it."""
        return self.value

    @property
    def pattern(self) -> tuple[Any, ...]:
        """The row numbers."""
        return (self.rows,)

    @property
    def listed(self) -> str:
        """How much is listed, in words."""
        return f"{len(self.rows)} rows"

    def rebuilt(
        self, pattern: Sequence[Any], elements: Any, *, place: Place | None = None, shared: bool = False
    ) -> SelectedRows:
        """As SparseValue.rebuilt."""
        (rows,) = pattern
        return SelectedRows(rows, elements, self.height, place=place or self.place, check=False, shared=shared)

    def merged(self) -> SelectedRows:
        """The same matrix with each row listed once, in ascending order; the values of a row are added."""
        rows, value = merge_rows(self.rows, self.value)
        return SelectedRows(rows, value, self.height, place=self.place, check=False)

    def to_dense(self) -> np.ndarray:
        """The dense array [height, ...]; rows that are not listed are zero."""
        dense = np.zeros(self.shape, self.value.dtype)
        rows, value = merge_rows(self.rows, self.value)
        dense[rows] = value
        return dense

    def __repr__(self) -> str:
        return f"SelectedRows({self.dtype}{list(self.shape)}, rows={self.rows.tolist()})\n{self.value}"
