"""Kernel of isclose."""

from __future__ import annotations

from typing import Any

from oprack.kernel import kernel

from oprack_math.kernels._sets import BOTH, FLOATING
from oprack_math.kernels.compare._close import close


@kernel("isclose", place=BOTH, dtypes=FLOATING)
def isclose(
    Input: Any, Other: Any, Rtol: Any = None, Atol: Any = None, *, rtol: str, atol: str, equal_nan: bool, xp: Any
) -> Any:
    """Each element within the tolerances."""
    return close("isclose", Input, Other, (Rtol, Atol), (rtol, atol), equal_nan, xp)
