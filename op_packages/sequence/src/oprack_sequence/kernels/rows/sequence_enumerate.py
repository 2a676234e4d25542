"""Kernels of sequence_enumerate."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import INTEGERS

from oprack_sequence.kernels._lod import segment_ids, sequence_offsets


@kernel("sequence_enumerate", place=("cpu", "cuda"), dtypes=INTEGERS)
def sequence_enumerate(X: Array, *, win_size: int, pad_value: int, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather of [N, win_size] ids."""
    offsets = sequence_offsets(ctx, "X")
    rows = np.arange(offsets[-1])[:, None] + np.arange(win_size)
    inside = rows < offsets[1:][segment_ids(offsets)][:, None]
    ids = X.reshape(-1)[xp.asarray(np.where(inside, rows, 0))]
    return xp.where(xp.asarray(inside), ids, X.dtype.type(pad_value))
