"""Kernels of broadcast_tensors and of its gradient."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._reduce import sum_to


@kernel("broadcast_tensors", place=("cpu", "cuda"))
def broadcast_tensors(X: list[Array], *, xp: ArrayModule) -> dict[str, Any]:
    """Each in the common shape, in memory of its own."""
    return {"Out": [a.copy() for a in xp.broadcast_arrays(*X)]}


@kernel("broadcast_tensors_grad", place=("cpu", "cuda"))
def broadcast_tensors_grad(
    X: list[ShapeOnly], Out_grad: list[Array], *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Sums over what was repeated."""
    pairs = enumerate(zip(X, Out_grad, strict=True))
    return {"X@GRAD": [sum_to(g, x.shape, xp) if ctx.wants("X@GRAD", k) else None for k, (x, g) in pairs]}
