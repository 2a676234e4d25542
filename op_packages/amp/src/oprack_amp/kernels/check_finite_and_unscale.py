"""Kernel of check_finite_and_unscale."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS, HALF_FLOATS


@kernel("check_finite_and_unscale", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS)
@np.errstate(all="ignore")
def check_finite_and_unscale(X: list[Array], Scale: Array, *, xp: ArrayModule) -> tuple[list[Array], Array]:
    inverse = 1 / Scale.reshape(())
    found, out = xp.zeros((), bool), []
    for x in X:
        found = found | ~xp.isfinite(x).all()
        # from the first bad gradient on all become 0, as in Paddle
        out.append((x * xp.where(found, 0, inverse)).astype(x.dtype, copy=False))
    return out, found.reshape(1)
