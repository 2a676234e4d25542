"""elementwise_add, sub, mul and div, with a second operand that may be broadcast; sums, and the gradient of add.

Both operands are looked at in the order of X's memory, and neighbouring dims along which Y behaves alike are taken
together, so [N, C, H, W] in channels-last memory with one number per channel is a matrix and a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization
from oprack.tensor import ShapeOnly

from oprack_onednn.chain.descs import primitive_desc
from oprack_onednn.chain.memory import Outlet, empty_like, memory_order
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError, contiguous_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import Region
from oprack_onednn.kernels._dense import ADDED, COLUMN_SUMS, COPIED, ROW_ADDED, loop
from oprack_onednn.kernels.declare import Limits, guarded, onednn_kernel
from oprack_onednn.stretch.callsite import ShapedPrimitive, call_site
from oprack_onednn.stretch.stretch import joins

if TYPE_CHECKING:
    from oprack_onednn.dnnl.objects import Memory

_MOST_ROUNDS = 64


def aligned(x_shape: tuple[int, ...], y_shape: tuple[int, ...], axis: int) -> tuple[int, ...] | None:
    """Dims of Y at the rank of X, by the op's rule; None when they do not fit."""
    rank, k = len(x_shape), len(y_shape)
    if k > rank:
        return None
    axis = rank - k if axis == -1 or k == rank else axis
    if axis < 0:
        return None
    while axis + k > rank and k and y_shape[k - 1] == 1:
        k -= 1
    if axis + k > rank:
        return None
    dims = (1,) * axis + tuple(y_shape[:k]) + (1,) * (rank - axis - k)
    return dims if all(b in (a, 1) for a, b in zip(x_shape, dims, strict=True)) else None


def merged(shape: tuple[int, ...], dims: tuple[int, ...], order: tuple[int, ...]) -> list[tuple[int, bool]]:
    """[(size, whether Y has the dim)] of X's dims in memory order, with neighbours that behave alike as one."""
    groups: list[tuple[int, bool]] = []
    for d in order:
        full = dims[d] != 1
        if groups and groups[-1][1] == full:
            groups[-1] = (groups[-1][0] * shape[d], full)
        else:
            groups.append((shape[d], full))
    return groups or [(1, True)]


def _as_rows(groups: Sequence[tuple[int, bool]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Dims of X and of Y, at most three: matrices, of which Y may be a row or a column. Raises NotServedError."""
    x_dims = tuple(n for n, _ in groups)
    y_dims = tuple(n if full else 1 for n, full in groups)
    if groups[0][1] and len(groups) > 1:
        x_dims, y_dims = (1, *x_dims), (1, *y_dims)
    if len(x_dims) > 3:
        raise NotServedError("Y is broadcast along dims that lie apart")
    return x_dims, y_dims


class BinaryPrimitive(ShapedPrimitive):
    """X and Y of some shapes and strides. rounds: how often the chain runs, each time further by the steps (bytes)."""

    def __init__(
        self,
        algorithm: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        y_shape: tuple[int, ...],
        y_strides: tuple[int, ...],
        axis: int,
    ) -> None:
        order = memory_order(shape, strides)
        dims = aligned(shape, y_shape, axis)
        if order is None or dims is None or 0 in shape:
            raise NotServedError("X has gaps, or Y is larger")
        groups = merged(shape, dims, order)
        self.shape, self.strides, self.weights = shape, strides, {}
        self.rounds, self.steps = 1, (0, 0)
        if len(groups) == 3 and groups[0][1] and groups[0][0] <= _MOST_ROUNDS:
            # one number per image and channel: image by image
            (self.rounds, _), *groups = groups
            self.steps = (4 * math.prod(n for n, _ in groups), 4 * groups[-1][0])
        x_dims, y_dims = _as_rows(groups)
        chain = self.chain = PrimitiveChain()
        x, given = chain.input(MemoryDesc.strided(x_dims)), self._second(chain, shape, dims, order, y_shape, y_strides)
        y: Memory = given or chain.input(MemoryDesc.strided(y_dims))
        result = chain.output(MemoryDesc.strided(x_dims))
        y_desc = MemoryDesc.strided(y_dims)
        desc = primitive_desc("binary", LIBRARY.engine, algorithm, x.desc, y_desc, result.desc, Attributes())
        if given is not None:
            if self.rounds > 1:
                raise NotServedError("Y is in another order")
            y = chain.alias(given, y_desc)
        chain.add(desc, {_c.SRC: x, _c.SRC_1: y, _c.DST: result})

    def outlet(self) -> Outlet:
        return Outlet(self.shape, self.strides)

    @staticmethod
    def _second(
        chain: PrimitiveChain,
        shape: tuple[int, ...],
        dims: tuple[int, ...],
        order: tuple[int, ...],
        y_shape: tuple[int, ...],
        y_strides: tuple[int, ...],
    ) -> Memory | None:
        """Y copied into the order of X's memory, when it is in another; else None."""
        own = [s for n, s in zip(y_shape, y_strides, strict=True) if n != 1]
        kept = [d for d in range(len(shape)) if dims[d] != 1]
        if any(s <= 0 or s % 4 for s in own) or len(own) != len(kept):
            raise NotServedError(f"strides {y_strides}")
        by_dim = dict(zip(kept, (s // 4 for s in own), strict=True))
        wanted = [d for d in order if dims[d] != 1]
        sizes = [dims[d] for d in wanted]
        strides = [by_dim[d] for d in wanted]
        if tuple(strides) == contiguous_strides(sizes):
            return None
        return chain.reorder(chain.input(MemoryDesc.strided(sizes, strides)), MemoryDesc.strided(sizes))


def _find(X: Array, Y: Array, axis: int, algorithm: int) -> BinaryPrimitive | None:
    key = ("binary", algorithm, X.shape, X.strides, Y.shape, Y.strides, axis)
    found: BinaryPrimitive | None = THREAD.primitive(key, BinaryPrimitive, *key[1:])
    return found


def apply(X: Array, Y: Array, axis: int, out: Array | None, algorithm: int) -> Array:
    """The result in X's strides, or NotImplemented when NumPy should do it."""
    found = _find(X, Y, axis, algorithm)
    if found is None:
        return NotImplemented
    # `out` is X's own buffer where the op works in place, whose order is the primitive's only if the strides are.
    result = empty_like(X) if out is None or out.strides != X.strides else out
    run, (dx, dy) = found.chain.run, found.steps
    if found.rounds == 1:
        run(X, Y, result)
        return result
    x, y, r = map(Region, (X, Y, result))
    for i in range(found.rounds):
        run((x, i * dx), (y, i * dy), (r, i * dx))
    return result


def _sum(X: Array, Y: Array, axis: int, out: Array | None, algorithm: int) -> Array:
    """By a loop of ours where there is one, for which nothing is made for a size."""
    found = None
    if X.shape == Y.shape:
        found = loop(ADDED, X, Y, out)
    elif _is_row(X.shape, Y.shape, axis):
        found = loop(ROW_ADDED, X, Y, out)
    return apply(X, Y, axis, out, algorithm) if found is None else found


def _is_row(x_shape: tuple[int, ...], y_shape: tuple[int, ...], axis: int) -> bool:
    """Whether Y is added to each row of X, a row being the last dim."""
    return len(y_shape) == 1 and len(x_shape) > 1 and axis in (-1, len(x_shape) - 1) and y_shape[0] == x_shape[-1] > 1


def _joined(
    algorithm: int, compute: Callable[..., Array] = apply
) -> Callable[[KernelSpecialization], Callable[..., Any]]:
    """`specialize` of an op, whose results have NumPy's bits, so that small ones are part of stretches as well."""

    def specialize(call: KernelSpecialization) -> Callable[..., Any]:
        axis = call.attrs["axis"]

        def find(x: Array, y: Array) -> BinaryPrimitive | None:
            found = _find(x, y, axis, algorithm)
            return None if found is None or found.rounds > 1 else found

        site = call_site(find, (0, 1))

        def binary(X: Array, Y: Array, *, out: Array | None = None) -> Array:
            found: Array = guarded(compute, X, Y, axis, out, algorithm)
            return found

        def prepare(x: Array, y: Array) -> Any:
            return site.joinable.prepare(x, y) if x.size >= Limits.binary else None

        return joins(binary, replace(site.joinable, is_exact=True, prepare=prepare))

    return specialize


@onednn_kernel("elementwise_add", min_numel="binary", specialize=_joined(_c.BINARY_ADD, _sum))
def elementwise_add(X: Array, Y: Array, *, axis: int, out: Array | None = None) -> Array:
    return _sum(X, Y, axis, out, _c.BINARY_ADD)


@onednn_kernel("elementwise_add_grad", min_numel="binary", view=True, unread=("X", "Y"))
def elementwise_add_grad(
    Out_grad: Array, X: ShapeOnly, Y: ShapeOnly, *, axis: int, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """X@GRAD is a view of Out@GRAD."""
    if X.shape != Out_grad.shape or not ctx.wants("Y@GRAD"):
        return NotImplemented
    if Y.shape == X.shape:
        dy = loop(COPIED, Out_grad)
    else:
        dy = loop(COLUMN_SUMS, Out_grad) if _is_row(X.shape, Y.shape, axis) else None
    if dy is None:
        return NotImplemented
    return Out_grad if ctx.wants("X@GRAD") else None, dy


@onednn_kernel("sum")
def sum_of_all(X: list[Array]) -> Array:
    given = [x for x in X if x is not None]
    if len(given) < 2 or not all(isinstance(x, np.ndarray) and x.shape == given[0].shape for x in given):
        return NotImplemented
    first = given[0]
    if first.size < Limits.binary:
        return NotImplemented
    total = loop(ADDED, first, given[1])
    for x in given[2:]:
        total = None if total is None else loop(ADDED, total, x, total)
    return NotImplemented if total is None else total


@onednn_kernel("elementwise_sub", min_numel="binary", specialize=_joined(_c.BINARY_SUB))
def elementwise_sub(X: Array, Y: Array, *, axis: int, out: Array | None = None) -> Array:
    return apply(X, Y, axis, out, _c.BINARY_SUB)


@onednn_kernel("elementwise_mul", min_numel="binary", specialize=_joined(_c.BINARY_MUL))
def elementwise_mul(X: Array, Y: Array, *, axis: int) -> Array:
    return apply(X, Y, axis, None, _c.BINARY_MUL)


@onednn_kernel("elementwise_div", min_numel="binary", specialize=_joined(_c.BINARY_DIV))
def elementwise_div(X: Array, Y: Array, *, axis: int) -> Array:
    return apply(X, Y, axis, None, _c.BINARY_DIV)
