"""logical_xor: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.logical._family import Logical


class LogicalXor(Logical, type="logical_xor"):
    r"""$$Out = X \oplus Y$$"""
