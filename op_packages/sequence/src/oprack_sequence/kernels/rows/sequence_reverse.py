"""Kernels of sequence_reverse."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import reversed_rows, sequence_offsets


@kernel("sequence_reverse", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_reverse(X: Array, *, ctx: KernelContext, xp: ArrayModule) -> Array:
    """One gather of rows."""
    return X[xp.asarray(reversed_rows(sequence_offsets(ctx, "X")))]
