"""Affine ops after a product with a weight become part of the weight and of one addition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.ir import Match, NewVar, OpNode, PatternBuilder, fusion

from oprack_nn.passes._affine import affine_of, affine_ops, per_channel, representable

PRODUCTS = ("mul", "matmul", "matmul_v2")


def _columns_last(m: Match, op: OpNode) -> bool:
    """Whether the product's last dim is the last one of a weight of rank 2."""
    if m.value("w").ndim != 2 or m["x"].shape is None:
        return False
    if op.type == "mul":
        return m.attr(op, "y_num_col_dims") == 1
    flags = ("transpose_X", "transpose_Y") if op.type == "matmul" else ("trans_x", "trans_y")
    return len(m["x"].shape) > 1 and not any(m.attr(op, f) for f in flags)


@fusion("fold_affine_after_matmul")
def fold_affine_after_matmul(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """a (x w + b) + c  ->  x (a w) + (a b + c)"""
    product = p.op(PRODUCTS, X="x", Y=p.param("w"))
    biased = p.op("elementwise_add", X=product, Y=p.param("b"), commutative=True)
    bias = p.maybe(biased)

    def build(m: Match) -> NewVar | None:
        op, w, dims = m.op_of(product), m.value("w"), m["x"].shape
        if dims is None or not _columns_last(m, op) or (op.type == "matmul" and m.attr(op, "head_number") != 1):
            return None
        rank = m.attr(op, "x_num_col_dims") + 1 if op.type == "mul" else len(dims)
        b = per_channel(m.value("b"), m.attr(bias, "axis"), rank, rank - 1) if m.has(bias) else np.float64(0)
        affine = affine_of(m, m.root, rank, rank - 1)
        if b is None or affine is None or (np.all(affine[0] == 1) and not m.has(bias)):
            return None
        a, c = affine
        if any(v.ndim and v.size != w.shape[1] for v in (a, b, c)):
            return None
        scaled, shift = w.astype(np.float64) * a, a * b + c
        if not all(representable(v, w) for v in (scaled, shift)):
            return None
        out = m.op(op.type, X=m["x"], Y=m.new_param(scaled, like="w"), attrs=m.attrs(product))
        if not np.any(shift):
            return out
        added = m.new_param(np.broadcast_to(shift, w.shape[1:]), like="w")
        return m.op("elementwise_add", X=out, Y=added, attrs={"axis": -1})

    return p.either(*affine_ops(p, bias, biased)), build
