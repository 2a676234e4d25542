"""Kernel of mine_hard_examples."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS


@kernel("mine_hard_examples", dtypes=FLOATS)
def mine_hard_examples(
    ClsLoss: Array,
    MatchIndices: Array,
    MatchDist: Array,
    LocLoss: Array | None = None,
    *,
    neg_pos_ratio: float,
    neg_dist_threshold: float,
    sample_size: int,
    mining_type: str,
) -> tuple[LoDTensor, Array]:
    matched = MatchIndices != -1
    if mining_type == "max_negative":
        eligible, loss = ~matched & (MatchDist < neg_dist_threshold), ClsLoss
        count = (matched.sum(axis=1) * np.float32(neg_pos_ratio)).astype(np.int64)
    else:
        eligible, loss = np.ones_like(matched), ClsLoss if LocLoss is None else ClsLoss + LocLoss
        count = np.full(len(loss), sample_size)
    order = np.argsort(np.where(eligible, -loss, np.inf), axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    chosen = eligible & (rank < count[:, None])
    negative = chosen & ~matched
    updated = MatchIndices if mining_type == "max_negative" else np.where(chosen, MatchIndices, -1)
    offsets = [0, *np.cumsum(negative.sum(axis=1)).tolist()]
    return LoDTensor(np.nonzero(negative)[1].astype(np.int32)[:, None], [offsets]), updated.astype(np.int32)
