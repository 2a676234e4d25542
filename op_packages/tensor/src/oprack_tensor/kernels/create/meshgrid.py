"""Kernels of meshgrid."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._reduce import sum_over


@kernel("meshgrid", place=("cpu", "cuda"))
def meshgrid(X: list[Array], *, xp: ArrayModule) -> list[Array]:
    return [a.copy() for a in xp.meshgrid(*(x.reshape(-1) for x in X), indexing="ij")]


@kernel("meshgrid_grad", place=("cpu", "cuda"))
def meshgrid_grad(X: list[ShapeOnly], outputs_grad: list[Array], *, ctx: KernelContext, xp: ArrayModule) -> list[Array]:
    return [
        sum_over(g, tuple(a for a in range(g.ndim) if a != i), xp).reshape(x.shape) if ctx.wants("X@GRAD", i) else None
        for i, (x, g) in enumerate(zip(X, outputs_grad, strict=True))
    ]
