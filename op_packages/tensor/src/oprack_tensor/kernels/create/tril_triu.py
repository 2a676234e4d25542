"""Kernels of tril_triu."""

from __future__ import annotations

from oprack.kernel import kernel


@kernel("tril_triu", place=("cpu", "cuda"))
def tril_triu(X, *, diagonal, lower, xp):
    return (xp.tril if lower else xp.triu)(X, diagonal)


@kernel("tril_triu_grad", place=("cpu", "cuda"))
def tril_triu_grad(Out_grad, *, diagonal, lower, xp):
    return (xp.tril if lower else xp.triu)(Out_grad, diagonal)
