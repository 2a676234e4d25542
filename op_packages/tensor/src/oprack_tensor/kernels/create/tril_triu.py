"""Kernels of tril_triu."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel


@kernel("tril_triu", place=("cpu", "cuda"))
def tril_triu(X: Array, *, diagonal: int, lower: bool, xp: ArrayModule) -> Array:
    return (xp.tril if lower else xp.triu)(X, diagonal)


@kernel("tril_triu_grad", place=("cpu", "cuda"))
def tril_triu_grad(Out_grad: Array, *, diagonal: int, lower: bool, xp: ArrayModule) -> Array:
    return (xp.tril if lower else xp.triu)(Out_grad, diagonal)
