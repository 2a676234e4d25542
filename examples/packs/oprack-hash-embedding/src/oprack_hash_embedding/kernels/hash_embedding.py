"""Kernels of hash_embedding and its gradient for the CPU: by NumPy, and in one loop where numba is installed."""

from __future__ import annotations

import importlib.util

import numpy as np
from oprack.kernel import Array, Predicate, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

PHI, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
COMPILED = Predicate(lambda query: importlib.util.find_spec("numba") is not None, "numba is installed")


def rows_of(ids: Array, number: int, rows: int) -> Array:
    """The row of each id by hash function `number`, counted from 1."""
    z = ids.astype(np.int64).astype(np.uint64) + np.uint64(number * PHI % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(rows)).astype(np.int64)


@kernel("hash_embedding", dtypes=FLOATS)
def hash_embedding(Ids: Array, W: Array, *, hashes: int) -> Array:
    out = W[rows_of(Ids, 1, len(W))]
    for number in range(2, hashes + 1):
        out += W[rows_of(Ids, number, len(W))]
    return out


@kernel("hash_embedding_grad", dtypes=FLOATS)
def hash_embedding_grad(Ids: Array, W: ShapeOnly, Out_grad: Array, *, hashes: int) -> Array:
    grad = np.zeros(W.shape, Out_grad.dtype)
    for number in range(1, hashes + 1):
        np.add.at(grad, rows_of(Ids, number, len(grad)), Out_grad)
    return grad


@kernel("hash_embedding", dtypes=FLOATS, priority=10, when=COMPILED)
def hash_embedding_compiled(Ids: Array, W: Array, *, hashes: int) -> Array:
    from oprack_hash_embedding.loops import gather

    out = np.empty((*Ids.shape, W.shape[1]), W.dtype)
    gather(np.ascontiguousarray(Ids).reshape(-1), W, hashes, out.reshape(-1, W.shape[1]))
    return out


@kernel("hash_embedding_grad", dtypes=FLOATS, priority=10, when=COMPILED)
def hash_embedding_grad_compiled(Ids: Array, W: ShapeOnly, Out_grad: Array, *, hashes: int) -> Array:
    from oprack_hash_embedding.loops import scatter

    grad = np.zeros(W.shape, Out_grad.dtype)
    scatter(np.ascontiguousarray(Ids).reshape(-1), np.ascontiguousarray(Out_grad).reshape(-1, W.shape[1]), hashes, grad)
    return grad
