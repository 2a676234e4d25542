"""Kernels of where."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel


@kernel("where", place=("cpu", "cuda"))
def where(Condition: Array, X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    return xp.where(Condition, X, Y)


@kernel("where_grad", place=("cpu", "cuda"))
def where_grad(Condition: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule) -> tuple[Array, Array]:
    zero = xp.zeros((), Out_grad.dtype)
    return (
        xp.where(Condition, Out_grad, zero) if ctx.wants("X@GRAD") else None,
        xp.where(Condition, zero, Out_grad) if ctx.wants("Y@GRAD") else None,
    )
