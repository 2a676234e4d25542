"""Dropout that drops nothing is a factor, which other ops take in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.ir import Match, OpNode, PatternBuilder, fusion


def _only_scales(op: OpNode) -> bool:
    return bool(op.attr("is_test", False)) and op.attr("dropout_implementation", "") != "upscale_in_train"


@fusion("dropout_to_scale")
def dropout_to_scale(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """dropout(x, p) of a test, where training does not scale up  ->  scale(x, 1 - p)"""
    root = p.op("dropout", X="x", where=_only_scales)

    def build(m: Match) -> Any:
        # the factor of a scale is a float32
        if m["x"].dtype != "float32":
            return None
        return m.op("scale", X=m["x"], attrs={"scale": 1.0 - m.attr(root, "dropout_prob")})

    return root, build
