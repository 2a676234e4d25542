"""logical_or: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.logical._family import Logical


class LogicalOr(Logical, type="logical_or"):
    r"""$$Out = X \vee Y$$"""
