"""Kernels of cross_entropy2 and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_nn.kernels.loss._cross_entropy import BOTH, at_label, log, loss_shape, pick, require_probabilities
from oprack_nn.kernels.loss._labels import class_indices


@kernel("cross_entropy2", place=BOTH, dtypes=FLOATS)
def cross_entropy2(X: Array, Label: Array, *, ignore_index: int, xp: ArrayModule) -> tuple[Array, ...]:
    picked, _, counts = pick(X, Label, ignore_index, "cross_entropy2", xp)
    shape = loss_shape(X, Label)
    loss = (-log(picked, xp)).reshape(shape)
    require_probabilities(loss, X, "cross_entropy2", xp)
    return loss, xp.empty((*X.shape, 0), X.dtype), (picked * counts).reshape(shape)


@kernel("cross_entropy_grad2", place=BOTH, dtypes=FLOATS)
def cross_entropy_grad2(
    Y_grad: Array, MatchX: Array, Label: Array, XShape: ShapeOnly, *, ignore_index: int, xp: ArrayModule
) -> Array:
    shape = XShape.shape[:-1]
    column = (*shape[:-1], 1)
    index, counts = class_indices(Label.reshape(column), shape[-1], ignore_index, "cross_entropy_grad2", xp)
    return at_label(index, counts, shape[-1], -Y_grad.reshape(column) / MatchX.reshape(column), xp)
