"""Kernels of onednn_eltwise: a chain of element-wise functions in one primitive, which goes over memory once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, decline, kernel
from oprack.types import FLOATS
from oprack_nn.kernels.with_post_ops import after
from oprack_nn.ops.post_ops import CLIPPING

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import Outlet, memory_order
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.kernels._numbers import NOT_ORDINARY, is_ordinary
from oprack_onednn.kernels._steps import algorithm
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, attempt, call_site
from oprack_onednn.stretch.stretch import Joinable, joins

_ONE = np.ones(1, np.float32)
_ONE.flags.writeable = False
# post-ops that treat NaN or infinities otherwise than NumPy
LOSSY = (*CLIPPING, "gelu 0.0")


class EltwiseRowPrimitive(ShapedPrimitive):
    """A chain over the elements of x in the order of its memory: a product with 1 that has the chain as its post-ops.

    oneDNN's element-wise primitive itself takes post-ops in its slow implementation only.
    """

    def __init__(self, x: Array, post_ops: tuple[str, ...]) -> None:
        self.shape, self.strides, self.weights = x.shape, x.strides, {}
        row, one = MemoryDesc.strided((1, x.size)), MemoryDesc.strided((1, 1))
        attributes = Attributes([("eltwise", _c.ELTWISE[name], a, b) for name, a, b in map(algorithm, post_ops)])
        desc = primitive_desc("binary", LIBRARY.engine, _c.BINARY_MUL, row, one, row, attributes)
        chain = self.chain = PrimitiveChain()
        chain.add(desc, {_c.SRC: chain.input(row), _c.SRC_1: chain.input(one), _c.DST: chain.output(row)})

    def outlet(self) -> Outlet:
        return Outlet(self.shape, self.strides)


def find_primitive(x: Array, one: Array, post_ops: tuple[str, ...]) -> EltwiseRowPrimitive | None:
    """The chain's primitive; None when oneDNN does not serve it."""
    if memory_order(x.shape, x.strides) is None or not post_ops or not x.size:
        return None
    return THREAD.primitive(("chain", x.shape, x.strides, post_ops), EltwiseRowPrimitive, x, post_ops)


def _is_lossy(post_ops: Sequence[str]) -> bool:
    return any(text.startswith(LOSSY) for text in post_ops)


def _specialize(call: KernelSpecialization) -> Callable[..., Any]:
    """The primitive of each shape, bound; NumPy's functions where NaN or infinities would be lost."""
    post_ops = tuple(call.attrs["post_ops"])
    site = call_site(lambda x, one: find_primitive(x, one, post_ops))
    lossy = _is_lossy(post_ops)

    def onednn_eltwise(X: Array) -> Array:
        return decline(NOT_ORDINARY) if lossy and not is_ordinary(X) else site(X, _ONE)

    own, looks_at = site.joinable, "input" if lossy else ""
    joinable = Joinable((0,), lambda x: own.link(x, _ONE), looks_at=looks_at, prepare=lambda x: own.prepare(x, _ONE))
    return joins(onednn_eltwise, joinable)


@onednn_kernel("onednn_eltwise", specialize=_specialize)
def onednn_eltwise(X: Array, *, post_ops: list[str]) -> Array:
    if _is_lossy(post_ops) and not is_ordinary(X):
        return decline(NOT_ORDINARY)
    return attempt(lambda x, one: find_primitive(x, one, tuple(post_ops)), X, _ONE)


@kernel("onednn_eltwise", dtypes=FLOATS)
def reference_eltwise(X: Array, *, post_ops: list[str], ctx: KernelContext) -> Array:
    """One function after the other."""
    return after(X, 1, None, None, post_ops, ctx) if post_ops else X.copy()
