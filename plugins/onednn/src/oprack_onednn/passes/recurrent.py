"""A recurrent layer takes in the product in front of it, and two directions of a layer become one op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.ir import Graph, Match, NewVar, OpNode, PatternBuilder, fusion
from oprack_nn.passes.post_ops import plain_product

# matmul_v2 drops the LoD
_PRODUCTS = ("mul", "matmul")
_ACTIVATIONS = {
    "gru": {"gate_activation": "sigmoid", "activation": "tanh"},
    "lstm": {"gate_activation": "sigmoid", "cell_activation": "tanh", "candidate_activation": "tanh"},
}
_KEPT = {"gru": ("origin_mode",), "lstm": ("use_peepholes",)}


def _layer_row(op_type: str, gates: int) -> Callable[..., Any]:
    """A product with a weight, and gru or lstm over its rows."""

    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        def only_a_product(op: OpNode) -> bool:
            return not op.attr("post_ops", []) and op.attr("x_num_col_dims", 1) in (1, -1)

        fused: dict[str, Any] = {"X": "x", "Y": p.param("wx"), "where": only_a_product}
        product = p.either(
            p.op(_PRODUCTS, X="x", Y=p.param("wx"), where=plain_product),
            p.op("matmul_post_ops", **fused),
            p.op("matmul_post_ops", **fused, Bias=p.param("b")),
        )
        root = p.op(
            op_type,
            Input=product,
            Weight=p.param("w"),
            Bias=p.param("bias", optional=True),
            attrs=_ACTIVATIONS[op_type],
            out="Hidden",
        )

        def build(m: Match) -> NewVar | None:
            wx, w = m.value("wx"), m.value("w")
            size = w.shape[0]
            shape = m["x"].shape
            if wx.shape[1] != gates * size or wx.dtype != "float32" or shape is None or len(shape) != 2:
                return None
            bias = m.value("bias").reshape(-1).copy() if m.has("bias") else np.zeros(gates * size, wx.dtype)
            if m.has("b"):
                if m.value("b").size != gates * size:
                    return None
                bias[: gates * size] += m.value("b").reshape(-1)
            bias = m.new_param(bias, like="w")
            attrs = {name: m.attr(root, name) for name in _KEPT[op_type]}
            attrs["is_reverse"] = [m.attr(root, "is_reverse")]
            return m.op(f"onednn_fc_{op_type}", X=m["x"], WeightX=[m["wx"]], Weight=[m["w"]], Bias=[bias], attrs=attrs)

        return root, build

    return row


def _both_row(op_type: str) -> Callable[..., Any]:
    """Two directions of one layer, side by side."""

    def row(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
        one, other = (
            p.op(
                f"onednn_fc_{op_type}",
                X="x",
                WeightX=p.param(f"wx{i}"),
                Weight=p.param(f"w{i}"),
                Bias=p.param(f"b{i}"),
            )
            for i in range(2)
        )
        root = p.op("concat", X=[one, other], where=lambda op: op.attr("axis", 0) in (1, -1))

        def build(m: Match) -> NewVar | None:
            attrs = {name: m.attr(one, name) for name in _KEPT[op_type]}
            if attrs != {name: m.attr(other, name) for name in _KEPT[op_type]}:
                return None
            if m.value("w0").shape != m.value("w1").shape:
                return None
            attrs["is_reverse"] = [*m.attr(one, "is_reverse"), *m.attr(other, "is_reverse")]
            slots = {"WeightX": "wx", "Weight": "w", "Bias": "b"}
            weights: dict[str, Any] = {slot: [m[name + i] for i in "01"] for slot, name in slots.items()}
            return m.op(f"onednn_fc_{op_type}", X=m["x"], **weights, attrs=attrs)

        return root, build

    return row


_ROWS = fusion("onednn_fc_gru")(_layer_row("gru", 3)) + fusion("onednn_fc_lstm")(_layer_row("lstm", 4))
for _op_type in ("gru", "lstm"):
    _ROWS += fusion(f"onednn_fc_{_op_type}_directions")(_both_row(_op_type))


def fuse_recurrent(graph: Graph) -> int:
    """Recurrent layers with what is in front of them."""
    return _ROWS(graph)
