"""Kernels of onednn_lstm_step and onednn_take, so that a net that hears bit by bit is one native call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelSpecialization, kernel
from oprack.types import FLOATS

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import Outlet
from oprack_onednn.chain.native_steps import NativeStep
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import contiguous_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import RowMajorPrimitive, ShapedPrimitive, attempt, call_site


def _fits(*arrays: Array) -> bool:
    return RUNNER.library is not None and all(a.size and a.flags.c_contiguous for a in arrays)


# onednn_lstm_step -----------------------------------------------------------------------------------------------------
class _LstmStepPrimitive(ShapedPrimitive):
    """Two products, of which the second adds up, and a native step; results are h and c."""

    def __init__(self, x: Array, h: Array, c: Array, wx: Array, wh: Array, bias: Array) -> None:
        batch, size, wide = x.shape[1], h.shape[2], wx.shape[1]
        self.shape = h.shape
        sums, row, rows = (MemoryDesc.strided(dims) for dims in ((batch, wide), (1, wide), (batch, size)))
        descs = []
        for w, attributes in ((wx, Attributes()), (wh, Attributes([("binary", _c.BINARY_ADD, sums)]))):
            source, wanted = MemoryDesc.strided((batch, w.shape[0])), MemoryDesc.any(w.shape)
            added = row if w is wx else None
            descs.append(primitive_desc("matmul", LIBRARY.engine, source, wanted, added, sums, attributes))
        chosen = [desc.desc(_c.QUERY_WEIGHTS_MD) for desc in descs]
        self.weights = {
            i: Weights(MemoryDesc.strided(w.shape), d) for i, w, d in zip((3, 4), (wx, wh), chosen, strict=True)
        }
        chain = self.chain = PrimitiveChain()
        given = [chain.input(MemoryDesc.strided((batch, x.shape[2]))), chain.input(rows), chain.input(rows)]
        packed, b = [chain.input(d) for d in chosen], chain.input(row)
        results = [chain.output(rows), chain.output(rows)]
        first, gates = chain.temporary(sums), chain.temporary(sums)
        chain.add(descs[0], {_c.SRC: given[0], _c.WEIGHTS: packed[0], _c.BIAS: b, _c.DST: first})
        memory = {_c.SRC: given[1], _c.WEIGHTS: packed[1], _c.POST_OP | _c.SRC_1: first, _c.DST: gates}
        chain.add(descs[1], memory)
        memory = dict(enumerate([gates, given[2], *results]))
        chain.add(NativeStep("oprack_lstm_cell", (batch, size)), memory)

    def outlets(self) -> Sequence[Outlet]:
        return [Outlet(self.shape, tuple(4 * s for s in contiguous_strides(self.shape)))] * 2

    def taker(self) -> Callable[[], tuple[Any, Any]]:
        takes = [outlet.take for outlet in self.outlets()]

        def take() -> tuple[Any, Any]:
            (h, to_h), (c, to_c) = (take() for take in takes)
            return (h, c), (to_h, to_c)

        return take

    def results(self, result: Any) -> Sequence[np.ndarray]:
        found: Sequence[np.ndarray] = result
        return found

    def called(self, run: Callable[..., None]) -> Callable[..., None]:
        return lambda *addresses: run(*addresses[:-1], *addresses[-1])


def _find_step(x: Array, h: Array, c: Array, wx: Array, wh: Array, bias: Array) -> _LstmStepPrimitive | None:
    if not _fits(x, h, c, wx, wh, bias) or not all(map(is_constant, (wx, wh, bias))):
        return None
    wide = 4 * h.shape[2]
    if (
        h.shape != c.shape
        or x.shape[:2] != h.shape[:2]
        or [wx.shape, wh.shape, bias.shape] != [*((x.shape[2], wide), (h.shape[2], wide), (wide,))]
    ):
        return None
    key = ("lstm_step", x.shape, h.shape)
    found: _LstmStepPrimitive | None = THREAD.primitive(key, _LstmStepPrimitive, x, h, c, wx, wh, bias)
    return found


def _specialize_step(call: KernelSpecialization) -> Callable[..., Any]:
    return call_site(_find_step, (0, 1, 2))


@onednn_kernel("onednn_lstm_step", specialize=_specialize_step)
def lstm_step(
    X: Array, PreviousH: Array, PreviousC: Array, WeightX: Array, WeightH: Array, Bias: Array
) -> tuple[Array, Array]:
    found: tuple[Array, Array] = attempt(_find_step, X, PreviousH, PreviousC, WeightX, WeightH, Bias)
    return found


@kernel("onednn_lstm_step", dtypes=FLOATS)
def reference_lstm_step(
    X: Array, PreviousH: Array, PreviousC: Array, WeightX: Array, WeightH: Array, Bias: Array
) -> tuple[Array, Array]:
    i, f, g, o = np.split(X @ WeightX + PreviousH @ WeightH + Bias, 4, axis=-1)
    i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
    c = f * PreviousC + i * np.tanh(g)
    return o * np.tanh(c), c


# onednn_take ----------------------------------------------------------------------------------------------------------
class _TakePrimitive(RowMajorPrimitive):
    """Parts of x, row-major, along an axis."""

    def __init__(self, x: Array, axis: int, places: tuple[int, ...]) -> None:
        self.shape, self.weights = (*x.shape[:axis], len(places), *x.shape[axis + 1 :]), {}
        outer, width = int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis + 1 :]))
        chain = self.chain = PrimitiveChain()
        source, result = chain.input(MemoryDesc.strided(x.shape)), chain.output(MemoryDesc.strided(self.shape))
        # the settings have the places, so that nobody writes to them
        settings = (outer, x.shape[axis], width, len(places), *places)
        chain.add(NativeStep("oprack_take", settings), {_c.SRC: source, _c.DST: result})


def _find_take(x: Array, axis: int, places: tuple[int, ...]) -> _TakePrimitive | None:
    if not _fits(x) or not 0 <= axis < x.ndim or not all(0 <= place < x.shape[axis] for place in places):
        return None
    found: _TakePrimitive | None = THREAD.primitive(("take", x.shape, axis, places), _TakePrimitive, x, axis, places)
    return found


def _specialize_take(call: KernelSpecialization) -> Callable[..., Any]:
    return call_site(partial(_find_take, axis=call.attrs["axis"], places=tuple(call.attrs["places"])))


@onednn_kernel("onednn_take", specialize=_specialize_take)
def take(X: Array, *, axis: int, places: list[int]) -> Array:
    return attempt(partial(_find_take, axis=axis, places=tuple(places)), X)


@kernel("onednn_take", dtypes=FLOATS)
def reference_take(X: Array, *, axis: int, places: list[int]) -> Array:
    return np.take(X, places, axis=axis)
