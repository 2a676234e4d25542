"""Kernels of data_norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

_PLACES = ("cpu", "cuda")
_NEVER = 1e-7  # a count below it is none


def _shown(x: Array, slot_dim: int, xp: ArrayModule) -> Array:
    """[N, C], whether the slot of each element was ever shown."""
    if slot_dim <= 0:
        return xp.ones(x.shape, bool)
    return xp.repeat(xp.abs(x[:, ::slot_dim]) >= _NEVER, slot_dim, axis=1)


@kernel("data_norm", place=_PLACES, dtypes=FLOATS)
def data_norm(
    X: Array,
    BatchSize: Array,
    BatchSum: Array,
    BatchSquareSum: Array,
    scale_w: Array | None = None,
    bias: Array | None = None,
    *,
    slot_dim: int,
    enable_scale_and_shift: bool,
    xp: ArrayModule,
) -> tuple[Array, Array, Array]:
    """Columns by what is known of them."""
    means, scales = BatchSum / BatchSize, xp.sqrt(BatchSize / BatchSquareSum)
    y = (X - means) * scales
    if enable_scale_and_shift:
        y = y * scale_w + bias
    return xp.where(_shown(X, slot_dim, xp), y, y.dtype.type(0)), means, scales


@kernel("data_norm_grad", place=_PLACES, dtypes=FLOATS)
def data_norm_grad(
    X: Array,
    Means: Array,
    Scales: Array,
    Y_grad: Array,
    scale_w: Array | None = None,
    *,
    slot_dim: int,
    enable_scale_and_shift: bool,
    epsilon: float,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """The gradient of X, and what the counts grow by."""
    shown = _shown(X, slot_dim, xp).astype(X.dtype)
    centred, flowing = X - Means, Y_grad * shown
    count = shown.sum(axis=0)
    grads = {
        "X_grad": flowing * Scales * (scale_w if enable_scale_and_shift else 1),
        "BatchSize_grad": count,
        "BatchSum_grad": (X * shown).sum(axis=0),
        "BatchSquareSum_grad": (centred * centred * shown).sum(axis=0) + count * count.dtype.type(epsilon),
        "scale_w_grad": (flowing * centred * Scales).sum(axis=0),
        "bias_grad": flowing.sum(axis=0),
    }
    return {slot: value for slot, value in grads.items() if ctx.wants(slot.replace("_grad", "@GRAD"))}
