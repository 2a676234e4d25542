"""Kernels of smooth_l1_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS


@kernel("smooth_l1_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def smooth_l1_loss(
    X: Array,
    Y: Array,
    InsideWeight: Array | None = None,
    OutsideWeight: Array | None = None,
    *,
    sigma: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    kind, s2 = X.dtype.type, sigma * sigma
    diff = X - Y
    if InsideWeight is not None:
        diff = diff * InsideWeight
    size = abs(diff)
    loss = xp.where(size < 1 / s2, kind(0.5 * s2) * size * size, size - kind(0.5 / s2))
    if OutsideWeight is not None:
        loss = loss * OutsideWeight
    return diff, loss.sum(axis=tuple(range(1, X.ndim))).reshape(X.shape[0], 1)


@kernel("smooth_l1_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def smooth_l1_loss_grad(
    Diff: Array,
    Out_grad: Array,
    InsideWeight: Array | None = None,
    OutsideWeight: Array | None = None,
    *,
    sigma: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    kind, s2 = Diff.dtype.type, sigma * sigma
    dx = xp.where(abs(Diff) < 1 / s2, kind(s2) * Diff, xp.sign(Diff))
    dx = dx * Out_grad.reshape(-1, *([1] * (Diff.ndim - 1)))
    for weight in (InsideWeight, OutsideWeight):
        if weight is not None:
            dx = dx * weight
    return {"X@GRAD": dx, "Y@GRAD": -dx if ctx.wants("Y@GRAD") else None}
