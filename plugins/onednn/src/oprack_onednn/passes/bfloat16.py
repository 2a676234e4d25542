"""Convolutions and products with weights that round their factors to bfloat16, for who asked for it."""

from __future__ import annotations

from collections.abc import Collection

from oprack.ir import Graph

from oprack_onednn.library import LIBRARY
from oprack_onednn.ops.precision import BFLOAT16, NAME


def _mark(graph: Graph, types: Collection[str]) -> int:
    """Set the attribute of all ops of some types, where this CPU has the instructions."""
    if not LIBRARY.usable() or not LIBRARY.has_bfloat16():
        return 0
    chosen = [op for op in graph.ops if op.type in types and op.attr(NAME) != BFLOAT16]
    for op in chosen:
        op.desc.set_attr(NAME, BFLOAT16)
    return len(chosen)


def convolutions(graph: Graph) -> int:
    """Fused convolutions."""
    return _mark(graph, ("onednn_conv2d", "onednn_conv2d_chain", "onednn_pointwise_conv2d"))


def products(graph: Graph) -> int:
    """Fused products with weights."""
    return _mark(graph, ("onednn_matmul",))
