"""Kernel of isclose."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, FLOATING
from oprack_math.kernels.compare._close import close


@kernel("isclose", place=BOTH, dtypes=FLOATING)
def isclose(
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
    """Each element within the tolerances."""
    return close("isclose", Input, Other, (Rtol, Atol), (rtol, atol), equal_nan, xp)
