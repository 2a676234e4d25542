"""Kernels of nll_loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.loss import class_indices, one_hot

if TYPE_CHECKING:
    import numpy as np


def _weights(
    label: Array, weight: Array | None, classes: int, ignore_index: int, dtype: np.dtype[Any], op: str, xp: ArrayModule
) -> tuple[Array, ...]:
    """(index, mask, weight) of each label, with a dim of 1 for the classes."""
    index, counts = class_indices(xp.expand_dims(label, 1), classes, ignore_index, op, xp)
    w = counts.astype(dtype)
    return index, counts, w if weight is None else w * weight[index]


@kernel("nll_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def nll_loss(
    X: Array, Label: Array, Weight: Array | None = None, *, ignore_index: int, reduction: str, xp: ArrayModule
) -> tuple[Array, Array]:
    index, _, w = _weights(Label, Weight, X.shape[1], ignore_index, X.dtype, "nll_loss", xp)
    loss = (-w * xp.take_along_axis(X, index, axis=1)).reshape(Label.shape)
    if reduction == "none":
        return loss, xp.zeros((), X.dtype)
    total = w.sum()
    if reduction == "sum":
        return loss.sum(), total
    return xp.where(total > 0, loss.sum() / xp.where(total > 0, total, X.dtype.type(1)), X.dtype.type(0)), total


@kernel("nll_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def nll_loss_grad(
    X: Array,
    Label: Array,
    Total_weight: Array,
    Out_grad: Array,
    Weight: Array | None = None,
    *,
    ignore_index: int,
    reduction: str,
    xp: ArrayModule,
) -> Array:
    dtype = Out_grad.dtype
    index, counts, w = _weights(Label, Weight, X.shape[1], ignore_index, dtype, "nll_loss_grad", xp)
    scale = xp.expand_dims(Out_grad, 1) if reduction == "none" else Out_grad.reshape(())
    if reduction == "mean":
        total = Total_weight.reshape(())
        scale = scale / xp.where(total > 0, total, dtype.type(1))
    return one_hot(index, counts, X.shape[1], 1, dtype, xp) * (-w * scale)
