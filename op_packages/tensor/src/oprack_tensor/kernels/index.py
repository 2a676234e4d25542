"""Parts of tensors by place, mask or range, and what is written there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_tensor.dims import to_ints
from oprack_tensor.kernels._index import add_rows, check_index, columns, grid
from oprack_tensor.kernels._reduce import sum_over, sum_to
from oprack_tensor.ops.index import crop_sizes


# crop -----------------------------------------------------------------------------------------------------------------
# Parts of tensors, and what undoes taking them.
def part(x: Array, offsets: Sequence[int], shape: Sequence[int]) -> Array:
    """The part of x at the offsets, in memory of its own."""
    at = list(offsets) or [0] * x.ndim
    sizes = crop_sizes(x.shape, shape, at)
    return x[tuple(slice(o, o + n) for o, n in zip(at, sizes, strict=True))].copy()


def placed(shape: Sequence[int], values: Array, offsets: Sequence[int], xp: ArrayModule) -> Array:
    """Zeros of a shape with `values` at the offsets."""
    out = xp.zeros(shape, values.dtype)
    at = list(offsets) or [0] * values.ndim
    out[tuple(slice(o, o + n) for o, n in zip(at, values.shape, strict=True))] = values
    return out


# crop -----------------------------------------------------------------------------------------------------------------
@kernel("crop", place=("cpu", "cuda"))
def crop(
    X: Array, Y: Array | None = None, Offsets: Array | None = None, *, offsets: list[int], shape: list[int]
) -> Array:
    """A part of X."""
    return part(X, to_ints(Offsets, None, offsets), shape if Y is None else Y.shape)


@kernel("crop_grad", place=("cpu", "cuda"))
def crop_grad(
    X: ShapeOnly, Out_grad: Array, Offsets: Array | None = None, *, offsets: list[int], xp: ArrayModule
) -> Array:
    """Out@GRAD at its place."""
    return placed(X.shape, Out_grad, to_ints(Offsets, None, offsets), xp)


# crop_tensor ----------------------------------------------------------------------------------------------------------
@kernel("crop_tensor", place=("cpu", "cuda"))
def crop_tensor(
    X: Array,
    Shape: Array | None = None,
    ShapeTensor: list[Array] | None = None,
    Offsets: Array | None = None,
    OffsetsTensor: list[Array] | None = None,
    *,
    shape: list[int],
    offsets: list[int],
) -> Array:
    """A part of X."""
    return part(X, to_ints(Offsets, OffsetsTensor, offsets), to_ints(Shape, ShapeTensor, shape))


@kernel("crop_tensor_grad", place=("cpu", "cuda"))
def crop_tensor_grad(
    X: ShapeOnly,
    Out_grad: Array,
    Offsets: Array | None = None,
    OffsetsTensor: list[Array] | None = None,
    *,
    offsets: list[int],
    xp: ArrayModule,
) -> Array:
    """Out@GRAD at its place."""
    return placed(X.shape, Out_grad, to_ints(Offsets, OffsetsTensor, offsets), xp)


# gather ---------------------------------------------------------------------------------------------------------------
@kernel("gather", place=("cpu", "cuda"))
def gather(X: Array, Index: Array, Axis: Array | None = None, *, axis: int, xp: ArrayModule) -> Array:
    axis = axis if Axis is None else int(Axis.reshape(-1)[0])
    check_index("gather", "Index", Index, X.shape[axis], xp)
    return xp.take(X, Index if Index.ndim < 2 else Index[:, 0], axis=axis)


@kernel("gather_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def gather_grad(
    X: ShapeOnly, Index: Array, Axis: Array | None = None, Out_grad: RequiredArray = None, *, axis: int, xp: ArrayModule
) -> Array:
    axis = axis if Axis is None else int(Axis.reshape(-1)[0])
    axis += X.ndim if axis < 0 else 0
    grad = xp.zeros(X.shape, Out_grad.dtype)
    index = Index if Index.ndim < 2 else Index[:, 0]
    xp.add.at(grad, (slice(None),) * axis + (index,), Out_grad)
    return grad


# gather_nd ------------------------------------------------------------------------------------------------------------
@kernel("gather_nd", place=("cpu", "cuda"))
def gather_nd(X: Array, Index: Array, *, xp: ArrayModule) -> Array:
    for axis, column in enumerate(columns(Index)):
        check_index("gather_nd", f"Index[..., {axis}]", column, X.shape[axis], xp, low=-X.shape[axis])
    if not Index.shape[-1]:
        return xp.broadcast_to(X, (*Index.shape[:-1], *X.shape)).copy()
    return xp.asarray(X[columns(Index)])


@kernel("gather_nd_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def gather_nd_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    grad = xp.zeros(X.shape, Out_grad.dtype)
    add_rows(grad, Index, Out_grad, xp)
    return grad


# hash -----------------------------------------------------------------------------------------------------------------
# Kernel of hash: XXH64 of the bytes of all rows at once, with the specification's constants.
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)

_STRIPE = 32


def _rotated(x: Array, bits: int) -> Array:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


def _round(lane: Array, word: Array) -> Array:
    return _rotated(lane + word * _P2, 31) * _P1


def _xxh64(rows: Array, seed: int) -> Array:
    """uint64 [n], the hash of each row of bytes [n, length]; length is a multiple of 4."""
    n, length = rows.shape
    start = np.full(n, seed, np.uint64)
    at = 0
    if length >= _STRIPE:
        lanes = [start + _P1 + _P2, start + _P2, start, start - _P1]
        words = rows[:, : length // _STRIPE * _STRIPE].copy().view("<u8")
        for i in range(0, words.shape[1], 4):
            lanes = [_round(lane, words[:, i + k]) for k, lane in enumerate(lanes)]
        total: Any = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = (total ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
        at = words.shape[1] * 8
    else:
        total = start + _P5
    total = total + np.uint64(length)
    while length - at >= 8:
        word = rows[:, at : at + 8].copy().view("<u8")[:, 0]
        total = _rotated(total ^ _round(np.zeros_like(word), word), 27) * _P1 + _P4
        at += 8
    if length - at >= 4:
        word = rows[:, at : at + 4].copy().view("<u4")[:, 0].astype(np.uint64)
        total = _rotated(total ^ (word * _P1), 23) * _P2 + _P3
    total = (total ^ (total >> np.uint64(33))) * _P2
    total = (total ^ (total >> np.uint64(29))) * _P3
    return total ^ (total >> np.uint64(32))


@kernel("hash", dtypes=("int32", "int64"))
def hash_rows(X: Array, *, num_hash: int, mod_by: int) -> Array:
    """Hashes of each row, one for each seed."""
    rows = np.ascontiguousarray(X).view(np.uint8).reshape(len(X), -1) if X.size else np.zeros((len(X), 0), np.uint8)
    found = [_xxh64(rows, seed) % np.uint64(mod_by) for seed in range(num_hash)]
    return np.stack(found, axis=1).astype(X.dtype)[..., None]


# index_add ------------------------------------------------------------------------------------------------------------
@kernel("index_add", place=("cpu", "cuda"), deterministic={"cpu"})
def index_add(
    X: Array, Index: Array, AddValue: Array, *, axis: int, out: Array | None = None, xp: ArrayModule
) -> Array:
    """X, and AddValue added at the places Index."""
    check_index("index_add", "Index", Index, X.shape[axis], xp, low=-X.shape[axis])
    out = X.copy() if out is None else out
    xp.add.at(out, (slice(None),) * (axis % X.ndim) + (Index,), AddValue)
    return out


@kernel("index_add_grad", place=("cpu", "cuda"))
def index_add_grad(
    Index: Array, AddValue: ShapeOnly, Out_grad: Array, *, axis: int, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Out@GRAD for X, its parts at Index for AddValue."""
    by_value = xp.take(Out_grad, Index, axis=axis) if ctx.wants("AddValue@GRAD") else None
    return {"X_grad": Out_grad.copy() if ctx.wants("X@GRAD") else None, "AddValue_grad": by_value}


# index_sample ---------------------------------------------------------------------------------------------------------
@kernel("index_sample", place=("cpu", "cuda"))
def index_sample(X: Array, Index: Array, *, xp: ArrayModule) -> Array:
    check_index("index_sample", "Index", Index, X.shape[1], xp)
    return xp.take_along_axis(X, Index, axis=1)


@kernel("index_sample_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def index_sample_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    grad = xp.zeros(X.shape, Out_grad.dtype)
    xp.add.at(grad, (xp.arange(len(X))[:, None], Index), Out_grad)
    return grad


# index_select ---------------------------------------------------------------------------------------------------------
@kernel("index_select", place=("cpu", "cuda"))
def index_select(X: Array, Index: Array, *, dim: int, xp: ArrayModule) -> Array:
    check_index("index_select", "Index", Index, X.shape[dim], xp, low=-X.shape[dim])
    return xp.take(X, Index.reshape(-1), axis=dim)


@kernel("index_select_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def index_select_grad(X: ShapeOnly, Index: Array, Out_grad: Array, *, dim: int, xp: ArrayModule) -> Array:
    grad = xp.zeros(X.shape, Out_grad.dtype)
    axis = dim + X.ndim if dim < 0 else dim
    xp.add.at(grad, (slice(None),) * axis + (Index.reshape(-1),), Out_grad)
    return grad


# masked_select --------------------------------------------------------------------------------------------------------
@kernel("masked_select", place=("cpu", "cuda"))
def masked_select(X: Array, Mask: Array, *, xp: ArrayModule) -> Array:
    X, Mask = xp.broadcast_arrays(X, Mask)
    return X[Mask]


@kernel("masked_select_grad", place=("cpu", "cuda"))
def masked_select_grad(X: ShapeOnly, Mask: Array, Y_grad: Array, *, xp: ArrayModule) -> Array:
    shape = xp.broadcast_shapes(X.shape, Mask.shape) if X.shape != Mask.shape else X.shape
    grad = xp.zeros(shape, Y_grad.dtype)
    grad[xp.broadcast_to(Mask, shape)] = Y_grad
    return sum_to(grad, X.shape, xp)


# multiplex ------------------------------------------------------------------------------------------------------------
@kernel("multiplex", place=("cpu", "cuda"))
def multiplex(X: list[Array], Ids: Array, *, xp: ArrayModule) -> Array:
    """Rows of several tensors."""
    ids = Ids.reshape(-1)
    check_index("multiplex", "Ids", ids, len(X), xp)
    return xp.stack(X)[ids, xp.arange(len(ids))]


@kernel("multiplex_grad", place=("cpu", "cuda"))
def multiplex_grad(
    X: list[ShapeOnly], Ids: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Any]:
    """Each row of Out@GRAD to where it came from."""
    ids, grads = Ids.reshape(-1), []
    for k, x in enumerate(X):
        grad = None
        if ctx.wants("X@GRAD", k):
            grad = xp.zeros(x.shape, Out_grad.dtype)
            chosen = xp.nonzero(ids == k)[0]
            grad[chosen] = Out_grad[chosen]
        grads.append(grad)
    return {"X@GRAD": grads}


# repeat_interleave ----------------------------------------------------------------------------------------------------
@kernel("repeat_interleave")
def repeat_interleave(
    X: Array, RepeatsTensor: Array | None = None, *, Repeats: int, dim: int, xp: ArrayModule
) -> Array:
    """Parts one after the other."""
    if RepeatsTensor is not None and RepeatsTensor.size and int(RepeatsTensor.min()) < 0:
        raise InvalidArgumentError(
            f"op repeat_interleave: RepeatsTensor holds {int(RepeatsTensor.min())}; expected numbers of at least 0"
        )
    return xp.repeat(X, Repeats if RepeatsTensor is None else RepeatsTensor, axis=dim)


@kernel("repeat_interleave_grad")
def repeat_interleave_grad(
    X: ShapeOnly, Out_grad: Array, RepeatsTensor: Array | None = None, *, Repeats: int, dim: int, xp: ArrayModule
) -> Array:
    """Sums over the repetitions."""
    dim, size = dim % len(X.shape), X.shape[dim]
    if RepeatsTensor is None:
        lead, behind = X.shape[:dim], X.shape[dim + 1 :]
        return sum_over(Out_grad.reshape(*lead, size, Repeats, *behind), dim + 1, xp)
    grad = xp.zeros(X.shape, Out_grad.dtype)
    xp.add.at(grad, (slice(None),) * dim + (xp.repeat(xp.arange(size), RepeatsTensor),), Out_grad)
    return grad


# scatter --------------------------------------------------------------------------------------------------------------
@kernel("scatter", place=("cpu", "cuda"), deterministic={"cpu"})
def scatter(
    X: Array, Ids: Array, Updates: Array, *, overwrite: bool, out: Array | None = None, xp: ArrayModule
) -> Array:
    check_index("scatter", "Ids", Ids, len(X), xp)
    ids = Ids.reshape(-1)
    rows = Updates.reshape(len(ids), *X.shape[1:])
    out = X.copy() if out is None else out
    if overwrite:
        out[ids] = rows
    else:
        out[ids] = 0
        xp.add.at(out, ids, rows)
    return out


@kernel("scatter_grad", place=("cpu", "cuda"))
def scatter_grad(Ids: Array, Updates: ShapeOnly, Out_grad: Array, *, ctx: KernelContext) -> dict[str, Array | None]:
    ids = Ids.reshape(-1)
    x_grad = None
    if ctx.wants("X@GRAD"):
        x_grad = Out_grad.copy()
        x_grad[ids] = 0
    return {
        "X_grad": x_grad,
        "Updates_grad": Out_grad[ids].reshape(Updates.shape) if ctx.wants("Updates@GRAD") else None,
    }


# scatter_nd_add -------------------------------------------------------------------------------------------------------
@kernel("scatter_nd_add", place=("cpu", "cuda"), deterministic={"cpu"})
def scatter_nd_add(X: Array, Index: Array, Updates: Array, *, xp: ArrayModule) -> Array:
    for axis, column in enumerate(columns(Index)):
        check_index("scatter_nd_add", f"Index[..., {axis}]", column, X.shape[axis], xp, low=-X.shape[axis])
    out = X.copy()
    add_rows(out, Index, Updates, xp)
    return out


@kernel("scatter_nd_add_grad", place=("cpu", "cuda"))
def scatter_nd_add_grad(
    Index: Array, Updates: ShapeOnly, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> dict[str, Array | None]:
    updates_grad = None
    if ctx.wants("Updates@GRAD"):
        updates_grad = xp.broadcast_to(Out_grad[columns(Index)], Updates.shape).copy()
    return {"X_grad": Out_grad.copy() if ctx.wants("X@GRAD") else None, "Updates_grad": updates_grad}


# shard_index ----------------------------------------------------------------------------------------------------------
@kernel("shard_index", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def shard_index(X: Array, *, index_num: int, nshards: int, shard_id: int, ignore_value: int, xp: ArrayModule) -> Array:
    """Indices within the shard."""
    check_index("shard_index", "X", X, index_num, xp)
    size = -(-index_num // nshards)
    return xp.where(X // size == shard_id, X % size, X.dtype.type(ignore_value))


# similarity_focus -----------------------------------------------------------------------------------------------------
@kernel("similarity_focus", dtypes=FLOATS)
def similarity_focus(X: Array, *, axis: int, indexes: list[int]) -> Array:
    """One greatest free element of all slices at a time."""
    slices = np.moveaxis(X, axis, 1)[:, indexes]
    n, k, rows, columns = slices.shape
    free = np.ones(slices.shape, bool)
    chosen = np.zeros((n, k, rows * columns), bool)
    for _ in range(min(rows, columns)):
        left = np.where(free, slices, -np.inf).reshape(n, k, rows * columns)
        # where all that is left is -inf, the first free one
        best = np.where(left.max(axis=-1) > -np.inf, left.argmax(axis=-1), free.reshape(left.shape).argmax(axis=-1))
        np.put_along_axis(chosen, best[..., None], True, axis=-1)
        row, column = np.divmod(best, columns)
        free &= (np.arange(rows) != row[..., None])[..., :, None] & (np.arange(columns) != column[..., None])[
            ..., None, :
        ]
    mask = chosen.any(axis=1).reshape(n, rows, columns)
    return np.broadcast_to(np.expand_dims(mask, axis), X.shape).astype(X.dtype)


# take_along_axis ------------------------------------------------------------------------------------------------------
@kernel("take_along_axis", place=("cpu", "cuda"))
def take_along_axis(Input: Array, Index: Array, *, Axis: int, xp: ArrayModule) -> Array:
    check_index("take_along_axis", "Index", Index, Input.shape[Axis], xp, low=-Input.shape[Axis])
    return Input[grid(Index, Axis, xp)]


@kernel("take_along_axis_grad", place=("cpu", "cuda"), deterministic={"cpu"})
def take_along_axis_grad(Input: ShapeOnly, Index: Array, Result_grad: Array, *, Axis: int, xp: ArrayModule) -> Array:
    grad = xp.zeros(Input.shape, Result_grad.dtype)
    xp.add.at(grad, grid(Index, Axis, xp), Result_grad)
    return grad


# where ----------------------------------------------------------------------------------------------------------------
@kernel("where", place=("cpu", "cuda"))
def where(Condition: Array, X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    return xp.where(Condition, X, Y)


@kernel("where_grad", place=("cpu", "cuda"))
def where_grad(
    Condition: Array, Out_grad: Array, *, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    zero = xp.zeros((), Out_grad.dtype)
    return (
        xp.where(Condition, Out_grad, zero) if ctx.wants("X@GRAD") else None,
        xp.where(Condition, zero, Out_grad) if ctx.wants("Y@GRAD") else None,
    )


# where_index ----------------------------------------------------------------------------------------------------------
@kernel("where_index", place=("cpu", "cuda"))
def where_index(Condition: Array, *, xp: ArrayModule) -> Array:
    return xp.argwhere(Condition).astype("int64")
