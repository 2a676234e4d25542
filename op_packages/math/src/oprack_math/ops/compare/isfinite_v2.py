"""isfinite_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._finite import FiniteTest


class IsfiniteV2(FiniteTest, type="isfinite_v2"):
    r"""$$Out = [X \text{ is neither infinite nor NaN}]$$"""
