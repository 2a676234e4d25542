"""Kernels of losses of detectors."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")


def _weights(x: Array, label: Array, fg_num: Array, alpha: float, xp: ArrayModule) -> tuple[Array, Array]:
    """Factors of the losses of a row's class and of the others."""
    kind = x.dtype.type
    own = label == xp.arange(1, x.shape[1] + 1)
    scale = kind(1) / xp.maximum(fg_num.astype(x.dtype), kind(1))
    return own * kind(alpha) * scale, ((label != -1) & ~own) * kind(1 - alpha) * scale


def _chances(x: Array, xp: ArrayModule) -> tuple[Array, Array, Array, Array]:
    """(p, 1 - p, log p, log(1 - p))."""
    tail = xp.log1p(xp.exp(-abs(x)))
    log_p, log_q = xp.minimum(x, 0) - tail, -xp.maximum(x, 0) - tail
    return xp.exp(log_p), xp.exp(log_q), log_p, log_q


@kernel("sigmoid_focal_loss", place=_PLACES, dtypes=FLOATS)
def sigmoid_focal_loss(X: Array, Label: Array, FgNum: Array, *, gamma: float, alpha: float, xp: ArrayModule) -> Array:
    own, others = _weights(X, Label, FgNum, alpha, xp)
    p, q, log_p, log_q = _chances(X, xp)
    power = X.dtype.type(gamma)
    return -own * q**power * log_p - others * p**power * log_q


@kernel("sigmoid_focal_loss_grad", place=_PLACES, dtypes=FLOATS)
def sigmoid_focal_loss_grad(
    X: Array, Label: Array, FgNum: Array, Out_grad: Array, *, gamma: float, alpha: float, xp: ArrayModule
) -> Array:
    own, others = _weights(X, Label, FgNum, alpha, xp)
    p, q, log_p, log_q = _chances(X, xp)
    power = X.dtype.type(gamma)
    slope = own * q**power * (power * p * log_p - q) + others * p**power * (p - power * q * log_q)
    return slope * Out_grad
