"""isinf: all of the op but its kernel."""

from __future__ import annotations

from oprack_math.ops.compare._finite import AnyTest


class Isinf(AnyTest, type="isinf"):
    r"""$$Out = \bigvee [X = \pm\infty]$$"""
