"""SelectedRows: some rows of a large matrix, as gradients of embeddings have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.errors import InvalidArgumentError
from oprack.tensor.place import CPUPlace, Place
from oprack.types import dtype_name


def _row_numbers(rows: Any) -> np.ndarray:
    array = np.asarray(rows)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"SelectedRows: rows are {array.dtype}; expected integers")
    return array.astype(np.int64, copy=False).reshape(-1)


class SelectedRows:
    """Rows `rows[i]` of a matrix of `height` rows hold `value[i]`; a row may be listed twice, its values then add up.

    rows: int64 [n], any order. value: [n, ...]. height: rows of the dense matrix.
    Raises InvalidArgumentError when the number of rows and of values differ or a row lies outside the height.
    """

    __slots__ = ("height", "place", "rows", "shared", "value")

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
    def dtype(self) -> str:
        """Name of the dtype, for example "float32"."""
        return dtype_name(self.value.dtype)

    def merged(self) -> SelectedRows:
        """The same matrix with each row listed once, in ascending order; values of one row are added."""
        rows, inverse = np.unique(self.rows, return_inverse=True)
        value = np.zeros((len(rows), *self.value.shape[1:]), self.value.dtype)
        np.add.at(value, inverse.reshape(-1), self.value)
        return SelectedRows(rows, value, self.height, place=self.place, check=False)

    def to_dense(self) -> np.ndarray:
        """Dense array [height, ...]; rows not listed are zero."""
        dense = np.zeros(self.shape, self.value.dtype)
        np.add.at(dense, self.rows, self.value)
        return dense

    def __repr__(self) -> str:
        return f"SelectedRows({self.dtype}{list(self.shape)}, rows={self.rows.tolist()})\n{self.value}"
