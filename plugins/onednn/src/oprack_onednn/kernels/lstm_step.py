"""Kernels of onednn_lstm_step and onednn_take, so that a net that hears bit by bit is one native call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelSpecialization, kernel
from oprack.types import FLOATS

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import Outlet
from oprack_onednn.chain.native_steps import NativeStep
from oprack_onednn.chain.parameters import FromConstants, is_constant
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import contiguous_strides
from oprack_onednn.dnnl.objects import Memory, MemoryDesc
from oprack_onednn.kernels._recurrent import packed, packed_size
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import RowMajorPrimitive, ShapedPrimitive, attempt, call_site


def _fits(*arrays: Array) -> bool:
    return RUNNER.library is not None and all(a.size and a.flags.c_contiguous for a in arrays)


# onednn_lstm_step -----------------------------------------------------------------------------------------------------
_PACKED = FromConstants(lambda arrays: packed(*arrays))


class _LstmStepPrimitive(ShapedPrimitive):
    """A native step; results are h and c."""

    def __init__(self, x: Array, h: Array) -> None:
        self.shape, self.weights = h.shape, {}
        (batch, inputs), size, strided = x.shape[1:], h.shape[2], MemoryDesc.strided
        chain = self.chain = PrimitiveChain()
        rows = strided((batch, size))
        weights = [strided((packed_size(n, 4 * size),)) for n in (inputs, size)]
        memory: list[Memory] = [
            chain.input(desc) for desc in (strided((batch, inputs)), rows, rows, *weights, strided((1, 4 * size)))
        ]
        memory += [chain.temporary(strided((batch, 9 * size))), chain.output(rows), chain.output(rows)]
        # the settings have the rows in which sequences begin, and their lengths
        settings = batch, size, inputs, *range(batch), *[1] * batch
        chain.add(NativeStep("oprack_lstm_step", settings), dict(enumerate(memory)))

    def operand(self, i: int, array: Array) -> Array:
        return _PACKED((array,)) if i in (3, 4) else array

    def outlets(self) -> Sequence[Outlet]:
        return [Outlet(self.shape, tuple(4 * s for s in contiguous_strides(self.shape)))] * 2

    def taker(self, outlets: Sequence[Outlet]) -> Callable[[], tuple[Any, Any]]:
        takes = [outlet.take for outlet in outlets]

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
    found: _LstmStepPrimitive | None = THREAD.primitive(key, _LstmStepPrimitive, x, h)
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
