"""Kernels of c_embedding and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly

from oprack_nn.kernels.embedding._family import PLACES, REALS, SCATTER, gradient_of_rows, look_up


def _rows(ids: Array, rows: int, start_index: int, xp: ArrayModule) -> Array:
    """Rows of W by id; one behind the last for an id that is none of its."""
    local = ids.astype("int64") - start_index
    return xp.where((local >= 0) & (local < rows), local, rows)


@kernel("c_embedding", place=PLACES, dtypes=REALS)
def c_embedding(W: Array, Ids: Array, *, start_index: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    return look_up(W, _rows(Ids, len(W), start_index, xp), len(W), ctx.op_type, xp)


@kernel("c_embedding_grad", dtypes=REALS, **SCATTER)
def c_embedding_grad(
    W: ShapeOnly, Ids: Array, Out_grad: Array, *, start_index: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    rows = _rows(Ids, W.shape[0], start_index, xp)
    return gradient_of_rows(W.shape[0] + 1, rows, Out_grad, False, -1, ctx, xp)[:-1].copy()
