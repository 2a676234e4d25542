"""Kernels of c_embedding and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import SelectedRows, ShapeOnly

from oprack_nn.kernels.embedding._family import PLACES, REALS, SCATTER, gradient_of_rows, look_up, require_ids


def _rows(ids: Array, rows: int, start_index: int, padding_idx: int, xp: ArrayModule) -> Array:
    """Rows of W by id; one behind the last for an id that is none of its, and for padding_idx."""
    local = ids.astype("int64") - start_index
    own = (local >= 0) & (local < rows)
    return xp.where(own if padding_idx == -1 else own & (ids != padding_idx), local, rows)


@kernel("c_embedding", place=PLACES, dtypes=REALS)
def c_embedding(
    W: Array, Ids: Array, *, start_index: int, vocab_size: int, padding_idx: int, ctx: KernelContext, xp: ArrayModule
) -> Array:
    if vocab_size >= 0:
        require_ids(Ids, vocab_size, padding_idx, ctx.op_type, xp)
    return look_up(W, _rows(Ids, len(W), start_index, padding_idx, xp), len(W), ctx.op_type, xp)


@kernel("c_embedding_grad", dtypes=REALS, **SCATTER)
def c_embedding_grad(
    W: ShapeOnly,
    Ids: Array,
    Out_grad: Array,
    *,
    start_index: int,
    padding_idx: int,
    is_sparse: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array | SelectedRows:
    rows = _rows(Ids, W.shape[0], start_index, padding_idx, xp)
    if is_sparse:
        own = rows < W.shape[0]
        return gradient_of_rows(W.shape[0], rows[own], Out_grad[own], True, -1, ctx, xp)
    return gradient_of_rows(W.shape[0] + 1, rows, Out_grad, False, -1, ctx, xp)[:-1].copy()
