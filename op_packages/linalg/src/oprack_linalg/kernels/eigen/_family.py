"""What kernels of eigenvalue ops share."""

from __future__ import annotations

from typing import Any

from oprack_linalg.kernels._matrices import refusing


def converging(op_type: str) -> Any:
    """Refuse matrices for which the iteration finds no end."""
    return refusing(op_type, "X", "has no eigenvalues that the iteration finds", "expected finite numbers")
