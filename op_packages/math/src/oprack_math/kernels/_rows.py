"""SelectedRows whose values are computed one by one."""

from __future__ import annotations

from oprack.tensor import SelectedRows


def with_values(x, value):
    """The rows of x with other values."""
    return SelectedRows(x.rows.copy(), value, x.height, place=x.place, check=False)
