"""Kernels of onednn_eltwise: a chain of element-wise functions in one primitive, which goes over memory once."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_onednn import _c
from oprack_onednn.kernels._special import is_ordinary
from oprack_onednn.kernels._steps import after
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import empty_like, memory_order
from oprack_onednn.native import Attributes, MemoryDesc, PrimitiveDesc
from oprack_onednn.operands import OperandError
from oprack_onednn.ops.post_ops import CLIPPING, algorithm
from oprack_onednn.plan import THREAD, Plan
from oprack_onednn.served import run_plain, served

_ONE = np.ones(1, np.float32)
# post-ops that treat NaN or infinities otherwise than NumPy
LOSSY = (*CLIPPING, "gelu 0.0")


def build(size, post_ops):
    """Plan of a chain over `size` elements: a product with 1 that has the chain as its post-ops.

    oneDNN's element-wise primitive itself takes post-ops in its slow implementation only.
    """
    row, one = MemoryDesc.strided((1, size)), MemoryDesc.strided((1, 1))
    attributes = Attributes([("eltwise", _c.ELTWISE[name], a, b) for name, a, b in map(algorithm, post_ops)])
    desc = PrimitiveDesc("binary", LIBRARY.engine, _c.BINARY_MUL, row, one, row, attributes)
    plan = Plan()
    plan.add(desc, {_c.SRC: plan.input(row), _c.SRC_1: plan.input(one), _c.DST: plan.output(row)})
    return plan


def apply(x, post_ops):
    """The chain's result in x's strides; NotImplemented when oneDNN does not serve it."""
    if memory_order(x.shape, x.strides) is None or not post_ops or not x.size:
        return NotImplemented
    plan = THREAD.plan(("chain", x.size, post_ops), build, x.size, post_ops)
    if plan is None:
        return NotImplemented
    if any(text.startswith(LOSSY) for text in post_ops) and not is_ordinary(x):
        return NotImplemented
    y = empty_like(x)
    plan.run(x, _ONE, y)
    return y


def _prepare(call):
    """The post-ops as a tuple, once."""
    post_ops = tuple(call.attrs["post_ops"])

    def onednn_eltwise(X):
        try:
            result = apply(X, post_ops) if LIBRARY.ready else NotImplemented
        except OperandError:
            result = NotImplemented
        return by_steps(X, post_ops) if result is NotImplemented else result

    return onednn_eltwise


@served("onednn_eltwise", prepare=_prepare)
def onednn_eltwise(X, *, post_ops, ctx):
    return apply(X, tuple(post_ops))


@kernel("onednn_eltwise", dtypes=FLOATS)
def plain_eltwise(X, *, post_ops):
    return by_steps(X, post_ops)


def by_steps(x, post_ops):
    """One function after the other."""
    return after(x, 1, None, None, post_ops, run_plain) if post_ops else x.copy()
