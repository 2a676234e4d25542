"""layer_norm."""

from __future__ import annotations

import math

import numpy as np

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import BUFFERS, address
from oprack_onednn.native import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, served


def build(rows, columns, epsilon, scaled, shifted):
    """Plan for [rows, columns]: X, then scale and bias if there are any, result, mean, variance."""
    matrix, column, row = (MemoryDesc.strided(s) for s in ((rows, columns), (rows,), (columns,)))
    flags = _c.USE_SCALE * scaled | _c.USE_SHIFT * shifted
    desc = PrimitiveDesc(
        "layer_normalization_forward",
        LIBRARY.engine,
        _c.FORWARD_TRAINING,
        matrix,
        matrix,
        column,
        epsilon,
        flags,
        Attributes(),
    )
    plan = Plan()
    arguments = {_c.SRC: plan.input(matrix)}
    if scaled:
        arguments[_c.SCALE] = plan.input(row)
    if shifted:
        arguments[_c.SHIFT] = plan.input(row)
    arguments |= {_c.DST: plan.output(matrix), _c.MEAN: plan.output(column), _c.VARIANCE: plan.output(column)}
    plan.add(desc, arguments)
    return plan


@served("layer_norm")
def layer_norm(X, Scale=None, Bias=None, *, epsilon, begin_norm_axis, ctx):
    parameters = [p for p in (Scale, Bias) if p is not None]
    if X.size < Limits.eltwise or not X.flags.c_contiguous or not all(p.flags.c_contiguous for p in parameters):
        return NotImplemented
    lead = X.shape[:begin_norm_axis]
    rows, columns = math.prod(lead), math.prod(X.shape[begin_norm_axis:])
    if not X.size or columns < 2:
        return NotImplemented
    key = (rows, columns, epsilon, Scale is not None, Bias is not None)
    plan = THREAD.plan(("layer_norm", *key), build, *key)
    if plan is None:
        return NotImplemented
    y, mean, variance = BUFFERS.take(X.shape), np.empty(lead, X.dtype), np.empty(lead, X.dtype)
    plan.run(THREAD, address(X), *map(address, parameters), address(y), address(mean), address(variance))
    return y, mean, variance
