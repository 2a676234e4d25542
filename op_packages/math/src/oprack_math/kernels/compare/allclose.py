"""Kernel of allclose."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, FLOATING
from oprack_math.kernels.compare._close import close


@kernel("allclose", place=BOTH, dtypes=FLOATING)
def allclose(
    Input: Any, Other: Any, Rtol: Any = None, Atol: Any = None, *, rtol: str, atol: str, equal_nan: bool, xp: Any
) -> Any:
    """All elements within the tolerances."""
    return close("allclose", Input, Other, (Rtol, Atol), (rtol, atol), equal_nan, xp).all()
