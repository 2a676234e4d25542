"""The kernel of erf."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS
from scipy import special


@kernel("erf", library="scipy_special", dtypes=FLOATS, priority=5)
def erf(X: Array, *, out: Array | None = None) -> Array:
    return special.erf(X, out=out)
