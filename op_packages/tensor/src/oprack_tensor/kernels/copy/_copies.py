"""Copies, one for each kind of variable."""

from __future__ import annotations

from typing import Any

from oprack.tensor import SelectedRows


def copy_of(X: Any) -> Any:
    """X in memory of its own."""
    return X.copy()


def copy_of_rows(X: SelectedRows) -> SelectedRows:
    """The same rows and values in memory of their own."""
    return SelectedRows(X.rows.copy(), X.value.copy(), X.height, place=X.place, check=False)
