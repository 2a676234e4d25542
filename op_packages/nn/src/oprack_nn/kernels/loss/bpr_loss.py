"""Kernels of bpr_loss."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.kernels._smooth import sigmoid, softplus
from oprack_nn.kernels.loss._labels import class_indices, one_hot, with_axis

_NEVER_IGNORED = -1


def _gaps(x: Array, label: Array, op: str, xp: ArrayModule) -> tuple[Array, Array]:
    """X_j - X_label, and the one-hot labels."""
    index, counts = class_indices(with_axis(label, x, -1, xp), x.shape[-1], _NEVER_IGNORED, op, xp)
    return x - xp.take_along_axis(x, index, axis=-1), one_hot(index, counts, x.shape[-1], -1, x.dtype, xp)


@kernel("bpr_loss", place=("cpu", "cuda"), dtypes=FLOATS)
def bpr_loss(X: Array, Label: Array, *, xp: ArrayModule) -> Array:
    gaps, hot = _gaps(X, Label, "bpr_loss", xp)
    return (softplus(gaps, xp) * (1 - hot)).sum(axis=-1, keepdims=True) / X.dtype.type(X.shape[-1] - 1)


@kernel("bpr_loss_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def bpr_loss_grad(X: Array, Label: Array, Y_grad: Array, *, xp: ArrayModule) -> Array:
    gaps, hot = _gaps(X, Label, "bpr_loss_grad", xp)
    slope = sigmoid(gaps, xp) * (1 - hot)
    slope -= hot * slope.sum(axis=-1, keepdims=True)
    return slope * (Y_grad.reshape(*X.shape[:-1], 1) / X.dtype.type(X.shape[-1] - 1))
