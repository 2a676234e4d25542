"""isnan_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._finite import FiniteTest


class IsnanV2(FiniteTest, type="isnan_v2"):
    r"""$$Out = [X \text{ is NaN}]$$"""
