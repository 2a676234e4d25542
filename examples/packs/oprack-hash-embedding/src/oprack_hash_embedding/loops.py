"""The loops that numba compiles, for each dtype on its first use: no array of rows is made, and no temporary sum."""

from __future__ import annotations

import numpy as np
from numba import njit
from oprack.kernel import Array

# Constants of a compiled function have to be of its own types: a Python number would make a signed or a float one.
_PHI, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_A, _B, _C = np.uint64(30), np.uint64(27), np.uint64(31)


@njit
def _row(id_: int, number: int, rows: int) -> int:
    z = np.uint64(np.int64(id_)) + np.uint64(number) * _PHI
    z = (z ^ (z >> _A)) * _FIRST
    z = (z ^ (z >> _B)) * _SECOND
    return np.int64((z ^ (z >> _C)) % np.uint64(rows))


@njit
def gather(ids: Array, table: Array, hashes: int, out: Array) -> None:
    """out[i] = the sum of the table's rows of ids[i]."""
    for i in range(ids.shape[0]):
        row = _row(ids[i], 1, table.shape[0])
        for c in range(table.shape[1]):
            out[i, c] = table[row, c]
        for number in range(2, hashes + 1):
            row = _row(ids[i], number, table.shape[0])
            for c in range(table.shape[1]):
                out[i, c] += table[row, c]


@njit
def scatter(ids: Array, grads: Array, hashes: int, table: Array) -> None:
    """Adds grads[i] to the table's rows of ids[i]."""
    for i in range(ids.shape[0]):
        for number in range(1, hashes + 1):
            row = _row(ids[i], number, table.shape[0])
            for c in range(table.shape[1]):
                table[row, c] += grads[i, c]
