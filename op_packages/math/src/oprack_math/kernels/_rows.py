"""SelectedRows whose values are computed one by one."""

from __future__ import annotations

from oprack.kernel import Array
from oprack.tensor import SelectedRows


def with_values(x: SelectedRows, value: Array) -> SelectedRows:
    """The rows of x with other values."""
    return SelectedRows(x.rows.copy(), value, x.height, place=x.place, check=False)
