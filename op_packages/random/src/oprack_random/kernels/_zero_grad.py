"""The gradient of numbers that do not depend on the input."""

from __future__ import annotations

from typing import Any


def zeros(Out_grad: Any, *, xp: Any) -> Any:
    """Zeros."""
    return xp.zeros_like(Out_grad)
