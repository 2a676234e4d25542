"""Kernels of center_loss and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.loss._labels import class_indices


@kernel("center_loss", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def center_loss(
    X: Array, Label: Array, Centers: Array, CenterUpdateRate: Array, *, need_update: bool, xp: ArrayModule
) -> tuple[Array, Array, Array]:
    """A row's distance from its centre, and the step of the centres."""
    index, _ = class_indices(Label.reshape(-1), len(Centers), -1, "center_loss", xp)
    diff = X - Centers[index]
    loss = (diff * diff).sum(axis=1, keepdims=True) / 2
    centers = Centers.copy()
    if need_update:
        step, count = xp.zeros_like(Centers), xp.ones((len(Centers), 1), Centers.dtype)
        xp.add.at(step, index, diff)
        xp.add.at(count, index, count.dtype.type(1))
        centers += CenterUpdateRate.reshape(-1)[0] * step / count
    return centers, diff, loss


@kernel("center_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def center_loss_grad(SampleCenterDiff: Array, Loss_grad: Array) -> Array:
    """One product."""
    return SampleCenterDiff * Loss_grad.reshape(-1, 1)
