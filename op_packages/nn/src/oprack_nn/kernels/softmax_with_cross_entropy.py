"""Kernels of softmax_with_cross_entropy."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_nn.kernels.loss import class_indices, one_hot, with_axis

BOTH = ("cpu", "cuda")


@kernel("softmax_with_cross_entropy", place=BOTH, dtypes=FLOATS)
def softmax_with_cross_entropy(
    Logits: Array, Label: Array, *, soft_label: bool, use_softmax: bool, ignore_index: int, axis: int, xp: ArrayModule
) -> tuple[Array, Array]:
    classes, dtype = Logits.shape[axis], Logits.dtype
    if Logits.size == 0:
        shape = [1 if i == axis % Logits.ndim else n for i, n in enumerate(Logits.shape)]
        loss = xp.zeros(shape, dtype)
        return Logits.copy(), loss if Label.ndim == Logits.ndim else xp.squeeze(loss, axis)
    if use_softmax:
        log_p = Logits - Logits.max(axis=axis, keepdims=True)
        p = xp.exp(log_p)
        total = p.sum(axis=axis, keepdims=True)
        p /= total
        log_total = xp.log(total)
    else:
        p = Logits.copy()
        log_p, log_total = None, dtype.type(0)
    if soft_label:
        scores = xp.log(p) if log_p is None else log_p - log_total
        return p, -(Label * scores).sum(axis=axis, keepdims=True)
    label = with_axis(Label, Logits, axis, xp)
    index, counts = class_indices(label, classes, ignore_index, "softmax_with_cross_entropy", xp)
    if log_p is None:
        loss = -xp.log(xp.take_along_axis(p, index, axis=axis))
    else:
        loss = log_total - xp.take_along_axis(log_p, index, axis=axis)
    loss = xp.where(counts, loss, dtype.type(0))
    return p, loss if Label.ndim == Logits.ndim else xp.squeeze(loss, axis)


@kernel("softmax_with_cross_entropy_grad", place=BOTH, dtypes=FLOATS)
def softmax_with_cross_entropy_grad(
    Softmax: Array,
    Label: Array,
    Loss_grad: Array,
    Softmax_grad: Array | None = None,
    *,
    soft_label: bool,
    use_softmax: bool,
    ignore_index: int,
    axis: int,
    xp: ArrayModule,
) -> Array:
    dtype = Softmax.dtype
    dloss = with_axis(Loss_grad, Softmax, axis, xp)
    if soft_label:
        target = Label
    else:
        label = with_axis(Label, Softmax, axis, xp)
        op = "softmax_with_cross_entropy_grad"
        index, counts = class_indices(label, Softmax.shape[axis], ignore_index, op, xp)
        target = one_hot(index, counts, Softmax.shape[axis], axis, dtype, xp)
        dloss = dloss * counts.astype(dtype)
    if use_softmax:
        dx = Softmax - target
    elif soft_label:
        dx = -target / Softmax
    else:
        # only the picked class has a gradient, so a probability of 0 elsewhere must not give nan
        dx = xp.where(target > 0, -target / xp.where(target > 0, Softmax, dtype.type(1)), dtype.type(0))
    dx *= dloss
    if Softmax_grad is None:
        return dx
    if use_softmax:
        dx += Softmax * (Softmax_grad - (Softmax_grad * Softmax).sum(axis=axis, keepdims=True))
    else:
        dx += Softmax_grad
    return dx
