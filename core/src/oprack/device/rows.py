"""Merges SelectedRows and makes them dense at any place, with the array library of the place."""

from __future__ import annotations

from typing import Any

import numpy as np

from oprack.tensor.selected_rows import SelectedRows


def dense_rows(rows: SelectedRows, xp: Any) -> Any:
    """The dense matrix [height, ...].

    Args:
        rows: The rows.
        xp: The array library of their place.

    Returns:
        The matrix.
    """
    if xp is np:
        return rows.to_dense()
    dense = xp.zeros(rows.shape, rows.value.dtype)
    xp.add.at(dense, rows.rows, rows.value)
    return dense


def merged_rows(rows: SelectedRows, xp: Any) -> SelectedRows:
    """The same matrix with each row listed once, in ascending order.

    On a device this synchronizes, since the host must know the number of distinct rows.

    Args:
        rows: The rows.
        xp: The array library of their place.

    Returns:
        The rows, each once.
    """
    if xp is np:
        return rows.merged()
    if not len(rows.rows):
        return SelectedRows(rows.rows.copy(), rows.value.copy(), rows.height, place=rows.place, check=False)
    ordered, segments, sums = _segment_sums(rows, xp)
    count = int(segments[-1]) + 1
    numbers = xp.empty(count, ordered.dtype)
    numbers[segments] = ordered
    return SelectedRows(numbers, sums[:count].copy(), rows.height, place=rows.place, check=False)


def row_totals(rows: SelectedRows, xp: Any) -> SelectedRows:
    """The sum of each row's values, for updates by `table[rows] = function(table[rows], value)`.

    On the host each row is listed once. On a device a row may be listed several times, always with the same sum:
    listing it once would mean waiting for the number of distinct rows.

    Args:
        rows: The rows.
        xp: The array library of their place.

    Returns:
        The sums.
    """
    if xp is np:
        return rows.merged()
    if not len(rows.rows):
        return rows
    ordered, segments, sums = _segment_sums(rows, xp)
    return SelectedRows(ordered, sums[segments], rows.height, place=rows.place, check=False)


def _segment_sums(rows: SelectedRows, xp: Any) -> tuple[Any, Any, Any]:
    """(row numbers in ascending order, for each the number of its segment, sum of each segment, then zeros)."""
    order = xp.argsort(rows.rows)
    ordered = rows.rows[order]
    is_first = xp.ones(len(ordered), bool)
    xp.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    segments = xp.cumsum(is_first) - 1
    sums = xp.zeros(rows.value.shape, rows.value.dtype)
    xp.add.at(sums, segments, rows.value[order])
    return ordered, segments, sums
