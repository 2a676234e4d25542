"""Activations that NumPy computes by several passes over memory."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, kernel

from oprack_numba.library import LIBRARY, usable


@kernel("hard_swish", dtypes={"float32"}, library="numba", when=usable, priority=5, min_numel=1 << 13)
def hard_swish(X: Array, *, threshold: float, scale: float, offset: float) -> Array:
    from oprack_numba import loops  # imports numba

    x = np.ascontiguousarray(X).reshape(-1)
    y = np.empty_like(x)
    numbers = np.float32(threshold), np.float32(scale), np.float32(offset)
    LIBRARY.share(lambda first, last: loops.hard_swish(x, y, first, last, *numbers), x.size, 4 * x.size)
    return y.reshape(X.shape)
