"""Tensors put together along a dim, and taken apart."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, attr, has_input, kernel
from oprack.tensor import LoDTensor, ShapeOnly, lod_from_lengths, lod_to_lengths

from oprack_tensor.dims import sections_of, to_ints
from oprack_tensor.kernels._reduce import sum_over
from oprack_tensor.ops.join import columns_of


# places ---------------------------------------------------------------------------------------------------------------
# Views of the places along a dim.
def places(array: Array, axis: int) -> list[Array]:
    """Views of the places along an axis, without that dim."""
    axis += array.ndim if axis < 0 else 0
    lead: tuple[Any, ...] = (slice(None),) * axis
    return [array[(*lead, i, ...)] for i in range(array.shape[axis])]


# concat ---------------------------------------------------------------------------------------------------------------
@kernel("concat", place=("cpu", "cuda"), when=(attr("axis") > 0) & ~has_input("AxisTensor"), priority=1)
def concat(X: list[Array], *, axis: int, xp: ArrayModule) -> Array:
    return _joined(X, axis, xp)


@kernel("concat", place=("cpu", "cuda"))
def concat_rows(
    X: list[Array], AxisTensor: Array | None = None, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> Array | LoDTensor:
    """Along dim 0, where sequences are joined as well, or along a dim that only a tensor tells."""
    lod = ctx.lod("X")
    if AxisTensor is not None:
        axis = int(AxisTensor.reshape(-1)[0])
    out = _joined(X, axis, xp)
    if not lod or (AxisTensor is None and axis % out.ndim):
        return out  # with the LoD of X[0]
    return LoDTensor(out, lod if axis % out.ndim else _joined_lod(ctx), check=False)


def _joined(pieces: Sequence[Array], axis: int, xp: ArrayModule) -> Array:
    out = xp.concatenate(pieces, axis=axis)
    if out.dtype != pieces[0].dtype:
        filled = [x for x in pieces if x.size]
        if filled and len(filled) < len(pieces):  # one without elements has widened the dtype
            return xp.concatenate(filled, axis=axis)
    return out


def _joined_lod(ctx: KernelContext) -> list[list[int]]:
    """The sequences of all X, one after the other; none when some X has no LoD."""
    lods = [ctx.lod("X", i) for i in range(ctx.input_count("X"))]
    levels = [len(lod) for lod in lods]
    if not all(levels):
        return []
    if len(set(levels)) > 1:
        raise InvalidLoDError(f"op concat: X has tensors of {levels} LoD levels; expected as many in each")
    by_level = zip(*map(lod_to_lengths, lods), strict=True)
    return lod_from_lengths(itertools.chain(*parts) for parts in by_level)


@kernel("concat_grad", place=("cpu", "cuda"), view=True)
def concat_grad(
    Out_grad: Array, X: list[ShapeOnly], AxisTensor: Array | None = None, *, axis: int, ctx: KernelContext
) -> list[Array | None]:
    axis = axis if AxisTensor is None else int(AxisTensor.reshape(-1)[0])
    axis += Out_grad.ndim if axis < 0 else 0
    grads, start = [], 0
    for i, x in enumerate(X):
        stop = start + x.shape[axis]
        part = Out_grad[(slice(None),) * axis + (slice(start, stop),)]
        grads.append(part if ctx.wants("X@GRAD", i) else None)
        start = stop
    return grads


# partial_concat -------------------------------------------------------------------------------------------------------
@kernel("partial_concat", place=("cpu", "cuda"))
def partial_concat(X: list[Array], *, start_index: int, length: int, xp: ArrayModule) -> Array:
    """The columns side by side."""
    columns = columns_of(X[0].shape[1], start_index, length)
    return xp.concatenate([x[:, columns] for x in X], axis=1)


@kernel("partial_concat_grad", place=("cpu", "cuda"))
def partial_concat_grad(
    X: list[ShapeOnly], Out_grad: Array, *, start_index: int, length: int, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Each part of Out@GRAD to where it came from."""
    columns, grads = columns_of(X[0].shape[1], start_index, length), []
    width = columns.stop - columns.start
    for k, x in enumerate(X):
        grad = xp.zeros(x.shape, Out_grad.dtype) if ctx.wants("X@GRAD", k) else None
        if grad is not None:
            grad[:, columns] = Out_grad[:, k * width : (k + 1) * width]
        grads.append(grad)
    return {"X@GRAD": grads}


# partial_sum ----------------------------------------------------------------------------------------------------------
@kernel("partial_sum", place=("cpu", "cuda"))
def partial_sum(X: list[Array], *, start_index: int, length: int, xp: ArrayModule) -> Array:
    """The sum of the columns."""
    columns = columns_of(X[0].shape[1], start_index, length)
    return sum_over(xp.stack([x[:, columns] for x in X]), 0, xp)


@kernel("partial_sum_grad", place=("cpu", "cuda"))
def partial_sum_grad(
    X: list[ShapeOnly], Out_grad: Array, *, start_index: int, length: int, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Out@GRAD in the columns of each."""
    grads = []
    for k, x in enumerate(X):
        grad = xp.zeros(x.shape, Out_grad.dtype) if ctx.wants("X@GRAD", k) else None
        if grad is not None:
            grad[:, columns_of(x.shape[1], start_index, length)] = Out_grad
        grads.append(grad)
    return {"X@GRAD": grads}


# split ----------------------------------------------------------------------------------------------------------------
# Kernel of split: views.
@kernel("split", place=("cpu", "cuda"), view=True)
def split(
    X: Array,
    AxisTensor: Array | None = None,
    SectionsTensorList: list[Array] | None = None,
    *,
    sections: list[int],
    num: int,
    axis: int,
) -> list[Array]:
    axis = axis if AxisTensor is None else int(AxisTensor.reshape(-1)[0])
    axis += X.ndim if axis < 0 else 0
    parts, start = [], 0
    for size in sections_of("split", X.shape[axis], num, to_ints(None, SectionsTensorList, sections)):
        parts.append(X[(slice(None),) * axis + (slice(start, start + size),)])
        start += size
    return parts


# stack ----------------------------------------------------------------------------------------------------------------
@kernel("stack", place=("cpu", "cuda"))
def stack(X: list[Array], *, axis: int, xp: ArrayModule) -> Array:
    return xp.stack(X, axis=axis)


@kernel("stack_grad", place=("cpu", "cuda"), view=True)
def stack_grad(Y_grad: Array, *, axis: int) -> list[Array]:
    return places(Y_grad, axis)


# unbind ---------------------------------------------------------------------------------------------------------------
# Kernel of unbind: views.
@kernel("unbind", place=("cpu", "cuda"), view=True)
def unbind(X: Array, *, axis: int) -> list[Array]:
    return places(X, axis)


# unstack --------------------------------------------------------------------------------------------------------------
# Kernels of unstack: views.
@kernel("unstack", place=("cpu", "cuda"), view=True)
def unstack(X: Array, *, axis: int) -> list[Array]:
    return places(X, axis)


@kernel("unstack_grad", place=("cpu", "cuda"))
def unstack_grad(Y_grad: list[Array], *, axis: int, xp: ArrayModule) -> Array:
    return xp.stack(Y_grad, axis=axis)
