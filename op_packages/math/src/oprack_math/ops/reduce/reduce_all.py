"""reduce_all: all of the op but its kernels."""

from __future__ import annotations

from oprack_math.ops.reduce._logical import LogicalReduce


class ReduceAll(LogicalReduce, type="reduce_all"):
    r"""$$Out = \bigwedge_{dim} X$$"""
