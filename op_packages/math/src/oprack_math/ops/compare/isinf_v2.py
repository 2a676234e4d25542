"""isinf_v2: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.compare._finite import FiniteTest


class IsinfV2(FiniteTest, type="isinf_v2"):
    r"""$$Out = [X = \pm\infty]$$"""
