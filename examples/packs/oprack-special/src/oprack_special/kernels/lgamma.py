"""The kernel of lgamma."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS
from scipy import special


@kernel("lgamma", library="scipy_special", dtypes=FLOATS, priority=5)
def lgamma(X: Array, *, out: Array | None = None) -> Array:
    return special.gammaln(X, out=out)
