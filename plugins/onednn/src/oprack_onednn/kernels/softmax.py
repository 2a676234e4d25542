"""softmax and log_softmax."""

from __future__ import annotations

import math

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import BUFFERS, address
from oprack_onednn.native import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import Limits, served


def build(shape, algorithm):
    """Plan for [outer, n, inner], over the middle dim."""
    desc = MemoryDesc.strided(shape)
    primitive = PrimitiveDesc(
        "softmax_forward", LIBRARY.engine, _c.FORWARD_INFERENCE, algorithm, desc, desc, 1, Attributes()
    )
    plan = Plan()
    plan.add(primitive, {_c.SRC: plan.input(desc), _c.DST: plan.output(desc)})
    return plan


def apply(X, axis, out, algorithm):
    if X.size < Limits.eltwise or not X.ndim or not X.size or not X.flags.c_contiguous:
        return NotImplemented
    axis %= X.ndim
    shape = (math.prod(X.shape[:axis]), X.shape[axis])
    inner = math.prod(X.shape[axis + 1 :])
    if inner > 1:
        shape = (*shape, inner)
    plan = THREAD.plan(("softmax", shape, algorithm), build, shape, algorithm)
    if plan is None:
        return NotImplemented
    y = BUFFERS.take(X.shape) if out is None or out.strides != X.strides else out
    plan.run(THREAD, address(X), address(y))
    return y


@served("softmax")
def softmax(X, *, axis, out=None, ctx):
    return apply(X, axis, out, _c.SOFTMAX_ACCURATE)


@served("log_softmax")
def log_softmax(X, *, axis, out=None, ctx):
    return apply(X, axis, out, _c.SOFTMAX_LOG)
