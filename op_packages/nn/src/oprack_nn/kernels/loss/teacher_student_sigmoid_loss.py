"""Kernels of teacher_student_sigmoid_loss and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


def _terms(label: Array, xp: ArrayModule) -> tuple[Array, Array]:
    """How often log(1 + e^X) counts, and the factor of X that is taken off."""
    kind = label.dtype.type
    alone = label < 0
    click = xp.where(label < -1, kind(0), kind(1))
    return xp.where(alone, kind(1), kind(2)), xp.where(alone, click, label)


@kernel("teacher_student_sigmoid_loss", place=_PLACES, dtypes=FLOATS)
def teacher_student_sigmoid_loss(X: Array, Label: Array, *, xp: ArrayModule) -> Array:
    count, factor = _terms(Label, xp)
    return count * (xp.maximum(X, 0) + xp.log1p(xp.exp(-abs(X)))) - factor * X


@kernel("teacher_student_sigmoid_loss_grad", place=_PLACES, dtypes=FLOATS)
def teacher_student_sigmoid_loss_grad(
    X: Array,
    Label: Array,
    Y_grad: Array,
    *,
    soft_max_up_bound: float,
    soft_max_lower_bound: float,
    xp: ArrayModule,
) -> Array:
    kind = X.dtype.type
    count, factor = _terms(Label, xp)
    near = xp.minimum(xp.maximum(X, kind(soft_max_lower_bound)), kind(soft_max_up_bound))
    slope = count / (kind(1) + xp.exp(-near)) - factor
    inside = (X > soft_max_lower_bound) & (X < soft_max_up_bound)
    return xp.where(inside, slope * Y_grad, kind(0))
