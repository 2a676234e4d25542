"""Kernel of allclose."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, FLOATING
from oprack_math.kernels.compare._close import close


@kernel("allclose", place=BOTH, dtypes=FLOATING)
def allclose(
    Input: Array,
    Other: Array,
    Rtol: Array | None = None,
    Atol: Array | None = None,
    *,
    rtol: str,
    atol: str,
    equal_nan: bool,
    xp: ArrayModule,
) -> Array:
    """All elements within the tolerances."""
    return close("allclose", Input, Other, (Rtol, Atol), (rtol, atol), equal_nan, xp).all()
