"""A batch_norm that no convolution took into its weights becomes a convolution of its own, of one tap per channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.ir import Graph, Match, OpNode, PatternBuilder, fusion


def _fixed(op: OpNode) -> bool:
    """Whether it takes the running statistics, of images with the channels in dim 1."""
    given = op.attr("is_test", False) or op.attr("use_global_stats", False)
    return (
        given and not op.attr("trainable_statistics", False) and op.attr("data_layout", "NCHW") in ("NCHW", "AnyLayout")
    )


@fusion("onednn_batch_norm")
def _batch_norm(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """s (x - mean) / sqrt(variance + epsilon) + c  ->  conv(x, a) + b, which takes in what follows as others do"""
    slots = {"Scale": "s", "Bias": "c", "Mean": "mean", "Variance": "variance"}
    rows: dict[str, Any] = {slot: p.param(name) for slot, name in slots.items()}
    norm = p.op("batch_norm", X="x", **rows, where=_fixed, unchanged=("MeanOut", "VarianceOut"))

    def build(m: Match) -> Any:
        x, values = m["x"], [m.value(name) for name in ("s", "c", "mean", "variance")]
        if x.shape is None or len(x.shape) != 4 or any(v.dtype != np.float32 or v.ndim != 1 for v in values):
            return None
        s, c, mean, variance = (v.astype(np.float64) for v in values)
        a = s / np.sqrt(variance + m.attr(norm, "epsilon"))
        found = [v.astype(np.float32) for v in (a, c - mean * a)]
        if not all(np.isfinite(v).all() for v in found):
            return None
        w, b = m.new_param(found[0].reshape(-1, 1, 1, 1), like="s"), m.new_param(found[1], like="c")
        return m.op("conv2d_post_ops", Input=x, Filter=w, Bias=b, attrs={"groups": a.size, "post_ops": []})

    return norm, build


def batch_norm_as_convolution(graph: Graph) -> int:
    """Every batch_norm with running statistics."""
    return _batch_norm(graph)
