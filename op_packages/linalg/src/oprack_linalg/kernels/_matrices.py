"""Batches of matrices: transposes, triangles, sums over broadcast batches, and LinAlgError in oprack's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule
from oprack.types import COMPLEX, FLOATS

BOTH = ("cpu", "cuda")
REAL_AND_COMPLEX = FLOATS | COMPLEX


@contextmanager
def refusing(op_type: str, slot: str, problem: str, advice: str) -> Iterator[None]:
    """Say which input a routine of linear algebra could not take.

    Args:
        op_type: The op.
        slot: The input.
        problem: What is wrong with a matrix of it.
        advice: What to do.

    Raises:
        InvalidArgumentError: The routine raised LinAlgError.
    """
    try:
        yield
    except ValueError as error:  # LinAlgError of NumPy and of SciPy is one
        if type(error).__name__ != "LinAlgError":
            raise
        raise InvalidArgumentError(f"op {op_type}: a matrix of {slot} {problem}; {advice}") from error


def singular(op_type: str, slot: str) -> Any:
    """Refuse singular matrices."""
    return refusing(op_type, slot, "is singular", "expected matrices that have an inverse; add a multiple of eye to it")


def adjoint(a: Array) -> Array:
    """Transpose of each matrix, conjugated when it is complex."""
    turned = a.swapaxes(-1, -2)
    return turned.conj() if a.dtype.kind == "c" else turned


def hermitian(a: Array) -> Array:
    """(A + A^H) / 2 of each matrix."""
    return (a + adjoint(a)) / 2


def half_diagonal(a: Array, xp: ArrayModule) -> Array:
    """The lower triangle of each matrix with half of its diagonal."""
    return xp.tril(a) - diagonal_matrix(diagonal(a, xp) / 2, xp)


def diagonal(a: Array, xp: ArrayModule) -> Array:
    """Diagonals, [..., N]."""
    return xp.diagonal(a, axis1=-2, axis2=-1)


def diagonal_matrix(values: Array, xp: ArrayModule) -> Array:
    """Matrices with these diagonals and zeros elsewhere."""
    return values[..., None] * xp.eye(values.shape[-1], dtype=values.dtype)


def triangle(a: Array, upper: bool, strict: bool, xp: ArrayModule) -> Array:
    """The upper or lower triangle of each matrix; strict: without its diagonal."""
    return xp.triu(a, int(strict)) if upper else xp.tril(a, -int(strict))


def reduced_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Sum of a gradient over the batch dims that were broadcast from `shape`."""
    extra = gradient.ndim - len(shape)
    if extra:
        gradient = gradient.sum(axis=tuple(range(extra)))
    axes = tuple(i for i, n in enumerate(shape[:-2]) if n == 1 and gradient.shape[i] != 1)
    return gradient.sum(axis=axes, keepdims=True) if axes else gradient


def inverse_differences(values: Array, xp: ArrayModule) -> Array:
    """1 / (v_j - v_i), with zeros on the diagonal."""
    difference = values[..., None, :] - values[..., :, None] + xp.eye(values.shape[-1], dtype=values.dtype)
    return 1 / difference - xp.eye(values.shape[-1], dtype=values.dtype)


def broadcast(a: Array, b: Array, xp: ArrayModule) -> tuple[Array, Array]:
    """Both with the batch dims that they have together."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return xp.broadcast_to(a, (*batch, *a.shape[-2:])), xp.broadcast_to(b, (*batch, *b.shape[-2:]))


def solve(op_type: str, slot: str, a: Array, b: Array, xp: ArrayModule) -> Array:
    """The X of A X = B, batch dims broadcast; `slot` is the input that A comes from, for the error."""
    with singular(op_type, slot):
        return xp.linalg.solve(*broadcast(a, b, xp))
