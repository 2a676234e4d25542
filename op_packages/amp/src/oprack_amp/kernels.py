"""Kernels, imported on the first use of their op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS


# check_finite_and_unscale ---------------------------------------------------------------------------------------------
@kernel("check_finite_and_unscale", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
@np.errstate(all="ignore")
def check_finite_and_unscale(X: list[Array], Scale: Array, *, xp: ArrayModule) -> tuple[list[Array], Array]:
    inverse = 1 / Scale.reshape(())
    found, out = xp.zeros((), bool), []
    for x in X:
        found = found | ~xp.isfinite(x).all()
        # from the first bad gradient on all become 0, as in Paddle
        out.append((x * xp.where(found, 0, inverse)).astype(x.dtype, copy=False))
    return out, found.reshape(1)


# check_numerics -------------------------------------------------------------------------------------------------------
@kernel("check_numerics", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS | COMPLEX)
def check_numerics(
    tensor: Array, *, op_type: str, var_name: str, check_nan_inf_level: int, xp: ArrayModule
) -> tuple[Array, Array]:
    """Three counts and three values; the counts are read back where they decide."""
    x = xp.abs(tensor) if tensor.dtype.kind == "c" else tensor
    x = x.astype(xp.float32) if x.dtype.itemsize < 4 else x
    stats = xp.stack([xp.isnan(x).sum(), xp.isinf(x).sum(), (x == 0).sum()]).astype(xp.int64)
    if check_nan_inf_level == 0 and stats[:2].any():
        nan, inf = (int(n) for n in stats[:2])
        raise InvalidArgumentError(
            f"op check_numerics: {var_name or 'tensor'}{f' of op {op_type}' if op_type else ''} holds {nan} NaN and "
            f"{inf} infinities in {x.size} elements; expected finite numbers (check_nan_inf_level=1 only counts them)"
        )
    if not x.size:
        return stats, xp.zeros(3, xp.float32)
    nan = xp.isnan(x)
    greatest, least = xp.where(nan, -xp.inf, x).max(), xp.where(nan, xp.inf, x).min()
    return stats, xp.stack([greatest, least, x.mean()]).astype(xp.float32)


# update_loss_scaling --------------------------------------------------------------------------------------------------
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
    scale, good_steps, bad_steps = values
    new: Sequence[Array] = _adapted(bad, scale, good_steps, bad_steps, rule, xp)
    if StopUpdate is not None:
        stop = StopUpdate.reshape(-1)[:1]
        new = [xp.where(stop, old, moved) for old, moved in zip(values, new, strict=True)]
    elif stop_update:
        new = values
    return (out, *(xp.broadcast_to(v, s.shape).astype(s.dtype) for s, v in zip(state, new, strict=True)))
