"""Kernel of update_loss_scaling."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS, HALF_FLOATS


def _adapted(
    bad: Array, scale: Array, good_steps: Array, bad_steps: Array, rule: tuple[int, int, float, float], xp: ArrayModule
) -> tuple[Array, ...]:
    """(scale, good steps, bad steps) after a step; all are arrays of one element, and nothing waits for a device."""
    incr_every, decr_every, incr_ratio, decr_ratio = rule
    kind = scale.dtype.type
    good, bad_now = good_steps + 1, bad_steps + 1
    grows, shrinks = ~bad & (good == incr_every), bad & (bad_now == decr_every)
    grown = scale * kind(incr_ratio)
    grown = xp.where(xp.isfinite(grown), grown, scale)
    shrunk = xp.maximum(scale * kind(decr_ratio), kind(1))
    new = xp.where(grows, grown, xp.where(shrinks, shrunk, scale))
    zero = good_steps.dtype.type(0)
    return new, xp.where(bad | grows, zero, good), xp.where(bad & ~shrinks, bad_now, zero)


@kernel("update_loss_scaling", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
def update_loss_scaling(
    X: list[Array],
    FoundInfinite: Array,
    PrevLossScaling: Array,
    InGoodSteps: Array,
    InBadSteps: Array,
    StopUpdate: Array | None = None,
    *,
    incr_every_n_steps: int,
    decr_every_n_nan_or_inf: int,
    incr_ratio: float,
    decr_ratio: float,
    stop_update: bool,
    xp: ArrayModule,
) -> tuple[list[Array], Array, Array, Array]:
    bad, rule = FoundInfinite.reshape(-1)[:1], (incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio)
    out = [xp.where(bad.reshape((1,) * x.ndim), x.dtype.type(0), x) for x in X]
    state = PrevLossScaling, InGoodSteps, InBadSteps
    values = [s.reshape(-1)[:1] for s in state]
    new = _adapted(bad, *values, rule, xp)
    if StopUpdate is not None:
        stop = StopUpdate.reshape(-1)[:1]
        new = [xp.where(stop, old, moved) for old, moved in zip(values, new, strict=True)]
    elif stop_update:
        new = values
    return (out, *(xp.broadcast_to(v, s.shape).astype(s.dtype) for s, v in zip(state, new, strict=True)))
