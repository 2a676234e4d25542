"""Kernels of cross_entropy and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.loss._cross_entropy import BOTH, at_label, log, loss_shape, pick, require_probabilities


@kernel("cross_entropy", place=BOTH, dtypes=FLOATS)
def cross_entropy(X: Array, Label: Array, *, soft_label: bool, ignore_index: int, xp: ArrayModule) -> Array:
    if soft_label:
        loss = -(Label * log(X, xp)).sum(axis=-1, keepdims=True)
    else:
        picked, _, _ = pick(X, Label, ignore_index, "cross_entropy", xp)
        loss = (-log(picked, xp)).reshape(loss_shape(X, Label))
    require_probabilities(loss, X, "cross_entropy", xp)
    return loss


@kernel("cross_entropy_grad", place=BOTH, dtypes=FLOATS)
def cross_entropy_grad(
    X: Array, Label: Array, Y_grad: Array, *, soft_label: bool, ignore_index: int, xp: ArrayModule
) -> Array:
    dy = Y_grad.reshape(*X.shape[:-1], 1)
    if soft_label:
        return -dy * Label / X
    picked, index, counts = pick(X, Label, ignore_index, "cross_entropy_grad", xp)
    return at_label(index, counts, X.shape[-1], -dy / picked, xp)
