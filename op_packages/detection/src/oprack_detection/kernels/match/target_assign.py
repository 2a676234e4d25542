"""Kernel of target_assign."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS, INTEGERS


@kernel("target_assign", dtypes=FLOATS | INTEGERS)
def target_assign(
    X: Array, MatchIndices: Array, NegIndices: Array | None = None, *, mismatch_value: int, ctx: KernelContext
) -> tuple[Array, Array]:
    n, m = MatchIndices.shape
    rows = np.diff(ctx.lod("X")[-1])
    matched = MatchIndices != -1
    if len(rows) != n or (MatchIndices >= rows[:, None]).any() or (MatchIndices < -1).any():
        raise InvalidArgumentError(
            f"op target_assign: MatchIndices {list(MatchIndices.shape)} goes up to {MatchIndices.max(initial=-1)}, and "
            f"X holds {rows.tolist()} rows for each image; expected indices below the rows of each image, or -1"
        )
    out = np.full((n, m, X.shape[2]), mismatch_value, X.dtype)
    image, prior = np.nonzero(matched)
    out[image, prior] = X[np.array(ctx.lod("X")[-1])[image] + MatchIndices[image, prior], prior % max(X.shape[1], 1)]
    weight = matched[..., None].astype(np.float32)
    if NegIndices is not None:
        offsets = ctx.lod("NegIndices")[-1]
        image = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        out[image, NegIndices.reshape(-1)] = mismatch_value
        weight[image, NegIndices.reshape(-1)] = 1
    return out, weight
