"""Kernels of concat."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from oprack.errors import InvalidLoDError
from oprack.kernel import Array, ArrayModule, KernelContext, attr, has_input, kernel
from oprack.tensor import LoDTensor, ShapeOnly, lod_from_lengths, lod_to_lengths


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
