"""The kernel of digamma."""

from __future__ import annotations

from oprack.kernel import Array, kernel
from oprack.types import FLOATS
from scipy import special


@kernel("digamma", library="scipy_special", dtypes=FLOATS, priority=5)
def digamma(X: Array, *, out: Array | None = None) -> Array:
    return special.psi(X, out=out)
