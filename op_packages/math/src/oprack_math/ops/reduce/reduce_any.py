"""reduce_any: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.reduce._logical import LogicalReduce


class ReduceAny(LogicalReduce, type="reduce_any"):
    r"""$$Out = \bigvee_{dim} X$$"""
