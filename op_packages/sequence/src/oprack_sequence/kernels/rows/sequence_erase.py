"""Kernels of sequence_erase."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import INTEGERS

from oprack_sequence.kernels._lod import host, sequence_offsets, with_lod


@kernel("sequence_erase", place=("cpu", "cuda"), dtypes=INTEGERS)
def sequence_erase(X: Array, *, tokens: list[int], ctx: KernelContext, xp: ArrayModule) -> LoDTensor:
    """A mask and one compression; the number of rows left is read back."""
    offsets = sequence_offsets(ctx, "X")
    kept = ~xp.isin(X.reshape(-1), xp.asarray(tokens, dtype=xp.int64))
    before = np.zeros(len(X) + 1, np.int64)
    np.cumsum(host(kept), out=before[1:])
    return with_lod(X[kept], [*ctx.lod("X")[:-1], before[offsets]])
