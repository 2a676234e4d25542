"""Kernels of add_position_encoding."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import positions, sequence_offsets


@kernel("add_position_encoding", place=("cpu", "cuda"), dtypes=FLOATS)
def add_position_encoding(X: Array, *, alpha: float, beta: float, ctx: KernelContext, xp: ArrayModule) -> Array:
    """A table of sinusoids for all positions, then one gather."""
    half = X.shape[-1] // 2
    if X.ndim == 3:
        time = np.arange(X.shape[1])
    else:
        time = positions(sequence_offsets(ctx, "X"))
    exponents = np.arange(half) / (half - 1) if half > 1 else np.ones(half)
    angles = np.arange(time.max(initial=-1) + 1)[:, None] / 10000.0**exponents
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(X.dtype)
    return X * X.dtype.type(alpha) + xp.asarray(table * X.dtype.type(beta))[xp.asarray(time)]


@kernel("add_position_encoding_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def add_position_encoding_grad(Out_grad: Array, *, alpha: float) -> Array:
    """A product."""
    return Out_grad * Out_grad.dtype.type(alpha)
