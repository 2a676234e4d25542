"""logical_and: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.logical._family import Logical


class LogicalAnd(Logical, type="logical_and"):
    r"""$$Out = X \wedge Y$$"""
