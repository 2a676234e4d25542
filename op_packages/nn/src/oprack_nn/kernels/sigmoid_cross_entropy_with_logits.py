"""Kernels of sigmoid_cross_entropy_with_logits."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.kernels._smooth import sigmoid, softplus

BOTH = ("cpu", "cuda")
_SAME = 1e-5  # labels are floats; Paddle compares them with ignore_index to this tolerance


def _counted(value: Array, label: Array, normalize: bool, ignore_index: int, xp: ArrayModule) -> Array:
    counts = abs(label - label.dtype.type(ignore_index)) > _SAME
    value = xp.where(counts, value, value.dtype.type(0))
    if normalize:
        value = value / xp.maximum(counts.sum(), _SAME).astype(value.dtype)
    return value


@kernel("sigmoid_cross_entropy_with_logits", place=BOTH, dtypes=FLOATS)
def sigmoid_cross_entropy_with_logits(
    X: Array, Label: Array, pos_weight: Array | None = None, *, normalize: bool, ignore_index: int, xp: ArrayModule
) -> Array:
    if pos_weight is None:
        loss = softplus(X, xp) - X * Label
    else:
        loss = xp.maximum(X, X.dtype.type(0)) - X * Label + pos_weight * xp.log1p(xp.exp(-abs(X)))
    return _counted(loss, Label, normalize, ignore_index, xp)


@kernel("sigmoid_cross_entropy_with_logits_grad", place=BOTH, dtypes=FLOATS)
def sigmoid_cross_entropy_with_logits_grad(
    X: Array,
    Label: Array,
    Out_grad: Array,
    pos_weight: Array | None = None,
    *,
    normalize: bool,
    ignore_index: int,
    xp: ArrayModule,
) -> Array:
    slope = sigmoid(X, xp)
    if pos_weight is not None:
        slope = pos_weight * slope + (X > 0) * (X.dtype.type(1) - pos_weight)
    slope = slope - Label
    return _counted(Out_grad * slope, Label, normalize, ignore_index, xp)
