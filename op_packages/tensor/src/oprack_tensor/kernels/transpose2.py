"""Kernels of transpose2 and transpose: views."""

from __future__ import annotations

from oprack.kernel import kernel


def _inverse(axis, rank):
    axes = [a % rank for a in axis]
    return sorted(range(rank), key=axes.__getitem__)


@kernel("transpose2", place=("cpu", "cuda"), view=True)
def transpose2(X, *, axis, xp):
    return X.transpose(axis), xp.empty((0, *X.shape), X.dtype)


@kernel("transpose", place=("cpu", "cuda"), view=True)
def transpose(X, *, axis):
    return X.transpose(axis)


@kernel("transpose2_grad", place=("cpu", "cuda"), view=True)
def transpose2_grad(Out_grad, *, axis):
    return Out_grad.transpose(_inverse(axis, Out_grad.ndim))


@kernel("transpose_grad", place=("cpu", "cuda"), view=True)
def transpose_grad(Out_grad, *, axis):
    return Out_grad.transpose(_inverse(axis, Out_grad.ndim))
