"""reduce_sum and reduce_mean over the last dims; reduce_mean and reduce_max over dims that others follow in memory.

The former are oneDNN's reductions, which are slow over other dims, and whose maximum is not used: it passes over NaN.
The latter are poolings with one window: what follows in memory are the channels of an image in channels-last memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from oprack.kernel import Array, KernelSpecialization, decline

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import BUFFERS, memory_order
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.kernels._numbers import NOT_ORDINARY, is_ordinary
from oprack_onednn.kernels.declare import Limits, onednn_kernel
from oprack_onednn.kernels.pool2d import PoolShape
from oprack_onednn.stretch.callsite import RowMajorPrimitive, attempt, call_site
from oprack_onednn.stretch.stretch import joins

# Elements that are summed to one: beyond, NumPy's sum in pairs is the more exact one.
_LONGEST = 1 << 14
# What follows in memory has to fill a vector at least.
_NARROWEST = 16


def build(rows: int, columns: int, algorithm: int) -> PrimitiveChain:
    """Chain for [rows, columns] to [rows]."""
    matrix, column = MemoryDesc.strided((rows, columns)), MemoryDesc.strided((rows, 1))
    desc = primitive_desc("reduction", LIBRARY.engine, algorithm, matrix, column, 0.0, 0.0, Attributes())
    chain = PrimitiveChain()
    chain.add(desc, {_c.SRC: chain.input(matrix), _c.DST: chain.output(column)})
    return chain


def apply(x: Array, dims: Sequence[int], keep_dim: bool, reduce_all: bool, algorithm: int) -> Array:
    rank = x.ndim
    if not x.size or not rank or not x.flags.c_contiguous:
        return NotImplemented
    reduced = range(rank) if reduce_all or not dims else sorted(d % rank for d in dims)
    first = reduced[0]
    columns = math.prod(x.shape[first:])
    if list(reduced) != list(range(first, rank)) or not 2 <= columns <= _LONGEST:
        return NotImplemented
    if not first and not keep_dim:
        return NotImplemented  # NumPy's result is a scalar then, and a plan counts on that
    rows = x.size // columns
    chain = THREAD.primitive(("reduction", rows, columns, algorithm), build, rows, columns, algorithm)
    if chain is None:
        return NotImplemented
    y = BUFFERS.take((*x.shape[:first], *[1] * (rank - first if keep_dim else 0)))
    chain.run(x, y)
    return y


@onednn_kernel("reduce_sum", min_numel="binary")
def reduce_sum(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool, out_dtype: int) -> Array:
    if out_dtype >= 0:
        return NotImplemented
    return apply(X, dim, keep_dim, reduce_all, _c.REDUCTION_SUM)


class WindowPrimitive(RowMajorPrimitive):
    """[outer, columns, inner] to [outer, inner], as pooling with one window."""

    def __init__(self, kind: str, outer: int, columns: int, inner: int, shape: tuple[int, ...]) -> None:
        self.shape, self.weights = shape, {}
        pool = PoolShape((outer, inner, 1, columns), kind, (1, 1), (1, 1), (0, 0), "EXPLICIT", True, False, True, False)
        chain = self.chain = PrimitiveChain()
        chain.add(
            pool.forward(_c.FORWARD_INFERENCE), {_c.SRC: chain.input(pool.source), _c.DST: chain.output(pool.target)}
        )


def _window(x: Array, dims: Sequence[int], keep_dim: bool) -> tuple[int, int, int, tuple[int, ...]] | None:
    """(outer, columns, inner, shape of the result) as WindowPrimitive takes them; None for what it is not for.

    Row-major arrays of few elements are left to NumPy. One in another order came from this library, and NumPy's result
    would end what runs in one call.
    """
    order, reduced = memory_order(x.shape, x.strides), {d % x.ndim for d in dims}
    if not x.size or order is None or (x.size < Limits.binary and x.flags.c_contiguous):
        return None
    first = next((i for i, d in enumerate(order) if d in reduced), 0)
    size = sum(d in reduced for d in order)
    kept = [d for d in order if d not in reduced]
    if not size or not reduced.issuperset(order[first : first + size]) or kept != sorted(kept):
        return None
    outer, columns, inner = (
        math.prod(x.shape[d] for d in part)
        for part in (order[:first], order[first : first + size], order[first + size :])
    )
    if inner < _NARROWEST or columns > _LONGEST:
        return None
    shape = tuple(1 if d in reduced else n for d, n in enumerate(x.shape) if keep_dim or d not in reduced)
    return outer, columns, inner, shape


def _find_window(kind: str, x: Array, dims: Sequence[int], keep_dim: bool) -> WindowPrimitive | None:
    found = _window(x, dims, keep_dim) if dims and all(-x.ndim <= d < x.ndim for d in dims) else None
    return None if found is None else THREAD.primitive(("window", kind, *found), WindowPrimitive, kind, *found)


def _specialize_max(call: KernelSpecialization) -> Callable[..., Array] | None:
    dims, keep_dim = call.attrs["dim"], call.attrs["keep_dim"]
    if call.attrs["reduce_all"] or not dims:
        return None
    site = call_site(lambda x: _find_window("max", x, dims, keep_dim))

    def run(X: Array) -> Array:
        y = site(X)
        return y if y is NotImplemented or is_ordinary(X) else decline(NOT_ORDINARY)

    return joins(run, replace(site.joinable, looks_at="input"))


@onednn_kernel("reduce_max", specialize=_specialize_max)
def reduce_max(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool) -> Array:
    """Greatest element over some dims; NumPy's kernel hands on NaN, pooling does not."""
    if reduce_all:
        return decline("of all elements NumPy finds the greatest as fast")
    y: Array = attempt(lambda x: _find_window("max", x, dim, keep_dim), X)
    return y if y is NotImplemented or is_ordinary(X) else decline(NOT_ORDINARY)


def _specialize_mean(call: KernelSpecialization) -> Callable[..., Array] | None:
    dims, keep_dim, reduce_all = (call.attrs[name] for name in ("dim", "keep_dim", "reduce_all"))
    if reduce_all or not dims:
        return None

    def fallback(X: Array) -> Array:
        return _mean(X, dims, keep_dim, reduce_all)

    return call_site(lambda x: _find_window("avg", x, dims, keep_dim), fallback=fallback)


def _mean(x: Array, dims: Sequence[int], keep_dim: bool, reduce_all: bool) -> Array:
    if not reduce_all:
        y: Array = attempt(lambda x: _find_window("avg", x, dims, keep_dim), x)
        if y is not NotImplemented:
            return y
    if x.size < Limits.binary:
        return decline("NumPy is as fast for so few elements")
    return apply(x, dims, keep_dim, reduce_all, _c.REDUCTION_MEAN)


@onednn_kernel("reduce_mean", specialize=_specialize_mean)
def reduce_mean(X: Array, *, dim: list[int], keep_dim: bool, reduce_all: bool) -> Array:
    """Mean over some dims."""
    return _mean(X, dim, keep_dim, reduce_all)
