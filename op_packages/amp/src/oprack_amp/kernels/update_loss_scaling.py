"""Kernel of update_loss_scaling."""

from __future__ import annotations

import math

import numpy as np
from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS


def _adapted(bad, scale, good_steps, bad_steps, rule):
    """(scale, good steps, bad steps) after a step."""
    incr_every, decr_every, incr_ratio, decr_ratio = rule
    if bad:
        bad_steps += 1
        if bad_steps == decr_every:
            return max(scale * decr_ratio, 1.0), 0, 0
        return scale, 0, bad_steps
    good_steps += 1
    if good_steps == incr_every:
        grown = scale * incr_ratio
        return (grown if math.isfinite(grown) else scale), 0, 0
    return scale, good_steps, 0


@kernel("update_loss_scaling", dtypes=FLOATS | HALF_FLOATS)
def update_loss_scaling(
    X,
    FoundInfinite,
    PrevLossScaling,
    InGoodSteps,
    InBadSteps,
    StopUpdate=None,
    *,
    incr_every_n_steps,
    decr_every_n_nan_or_inf,
    incr_ratio,
    decr_ratio,
    stop_update,
):
    bad = bool(FoundInfinite.reshape(-1)[0])
    out = [np.zeros_like(x) if bad else x.copy() for x in X]
    state = PrevLossScaling, InGoodSteps, InBadSteps
    stop = stop_update if StopUpdate is None else bool(StopUpdate.reshape(-1)[0])
    values = [s.reshape(-1)[0].item() for s in state]
    if not stop:
        rule = incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio
        values = _adapted(bad, *values, rule)
    return (out, *(np.full(s.shape, v, s.dtype) for s, v in zip(state, values, strict=True)))
