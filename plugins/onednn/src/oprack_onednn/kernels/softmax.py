"""softmax, log_softmax and their gradients."""

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


def build_grad(shape, algorithm):
    """Plan of the gradient over the middle dim of [outer, n, inner]: y, dy, dx."""
    desc, engine = MemoryDesc.strided(shape), LIBRARY.engine
    forward = PrimitiveDesc(
        "softmax_forward", engine, _c.FORWARD_TRAINING, algorithm, desc, desc, 1, Attributes(), any_speed=True
    )
    primitive = PrimitiveDesc("softmax_backward", engine, algorithm, desc, desc, desc, 1, forward, Attributes())
    plan = Plan()
    plan.add(primitive, {_c.DST: plan.input(desc), _c.DIFF_DST: plan.input(desc), _c.DIFF_SRC: plan.output(desc)})
    return plan


def _around(shape, axis):
    """[outer, n, inner], or [outer, n] when inner is 1."""
    axis %= len(shape)
    inner = math.prod(shape[axis + 1 :])
    return (math.prod(shape[:axis]), shape[axis], *([inner] if inner > 1 else []))


def apply(X, axis, out, algorithm):
    if X.size < Limits.eltwise or not X.ndim or not X.size or not X.flags.c_contiguous:
        return NotImplemented
    shape = _around(X.shape, axis)
    plan = THREAD.plan(("softmax", shape, algorithm), build, shape, algorithm)
    if plan is None:
        return NotImplemented
    y = BUFFERS.take(X.shape) if out is None or out.strides != X.strides else out
    plan.run(THREAD, address(X), address(y))
    return y


def apply_grad(y, dy, axis, algorithm):
    if not (y.ndim and y.size and y.flags.c_contiguous and dy.flags.c_contiguous and y.shape == dy.shape):
        return NotImplemented
    shape = _around(y.shape, axis)
    plan = THREAD.plan(("softmax_grad", shape, algorithm), build_grad, shape, algorithm)
    if plan is None:
        return NotImplemented
    dx = BUFFERS.take(y.shape)
    plan.run(THREAD, address(y), address(dy), address(dx))
    return dx


@served("softmax")
def softmax(X, *, axis, out=None, ctx):
    return apply(X, axis, out, _c.SOFTMAX_ACCURATE)


@served("log_softmax")
def log_softmax(X, *, axis, out=None, ctx):
    return apply(X, axis, out, _c.SOFTMAX_LOG)


@served("softmax_grad", least="binary")
def softmax_grad(Out, Out_grad, *, axis, ctx):
    return apply_grad(Out, Out_grad, axis, _c.SOFTMAX_ACCURATE)


@served("log_softmax_grad", least="eltwise")
def log_softmax_grad(Out, Out_grad, *, axis, ctx):
    return apply_grad(Out, Out_grad, axis, _c.SOFTMAX_LOG)
