"""isnan: all of the op but its kernel."""

from __future__ import annotations

from oprack_math.ops.compare._finite import AnyTest


class Isnan(AnyTest, type="isnan"):
    r"""$$Out = \bigvee [X \text{ is NaN}]$$"""
