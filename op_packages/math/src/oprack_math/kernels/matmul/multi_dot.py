"""Kernels of multi_dot and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS
from oprack_math.kernels.matmul._family import matmul


def _matrices(tensors: Sequence[Array]) -> list[Array]:
    """The first vector as a row, the last one as a column."""
    found = list(tensors)
    if found[0].ndim == 1:
        found[0] = found[0][None, :]
    if found[-1].ndim == 1:
        found[-1] = found[-1][:, None]
    return found


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """(first, last) matrix of a product -> after which one it is best cut; sizes: rows of all, columns of the last."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    cuts = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = {k: cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
            cuts[i, j] = min(options, key=options.__getitem__)
            cost[i, j] = options[cuts[i, j]]
    return cuts


def _chain(matrices: Sequence[Array], xp: ArrayModule) -> Array:
    """The product of one matrix or more."""
    cuts = _splits([*(m.shape[0] for m in matrices), matrices[-1].shape[1]])

    def part(i: int, j: int) -> Array:
        return matrices[i] if i == j else matmul(part(i, cuts[i, j]), part(cuts[i, j] + 1, j), xp)

    return part(0, len(matrices) - 1)


@kernel("multi_dot", place=BOTH, dtypes=REAL_FLOATS)
def multi_dot(X: list[Array], *, xp: ArrayModule) -> Array:
    """The product of all."""
    shape = X[0].shape[: X[0].ndim - 1] + X[-1].shape[1:]
    return _chain(_matrices(X), xp).reshape(shape)


@kernel("multi_dot_grad", place=BOTH, dtypes=REAL_FLOATS)
def multi_dot_grad(X: list[Array], Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> dict[str, Any]:
    """Out@GRAD between the transposed products of what is before and behind each factor."""
    m = _matrices(X)
    g = Out_grad.reshape(m[0].shape[0], m[-1].shape[1])
    grads = []
    for i, x in enumerate(X):
        chain = [*(a.T for a in reversed(m[:i])), g, *(a.T for a in reversed(m[i + 1 :]))]
        grads.append(_chain(chain, xp).reshape(x.shape) if ctx.wants("X@GRAD", i) else None)
    return {"X@GRAD": grads}
