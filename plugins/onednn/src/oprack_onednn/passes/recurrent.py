"""A recurrent layer takes in the product in front of it, two directions of a layer become one op, and a step is one."""

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
# Beyond so many places a call of NumPy is nothing beside the copy.
_MOST_PLACES = 1 << 12
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


def _step(graph: Graph, op: OpNode) -> bool:
    """One step of one layer of rnn, as a net has that hears or reads bit by bit, becomes onednn_lstm_step."""
    x, h, *_ = op.inputs["Input"] + op.inputs["PreState"]
    if (op.attr("mode", ""), op.attr("num_layers", 1), op.attr("is_bidirec", False)) != ("LSTM", 1, False):
        return False
    if op.input("SequenceLength") is not None or not op.attr("is_test", False) or x.dtype != "float32":
        return False
    if x.shape is None or x.shape[0] != 1 or h.dtype != "float32":
        return False
    given = [graph.constant_array(node) for node in op.inputs["WeightList"]]
    arrays = [a for a in given if a is not None and a.dtype == np.float32]
    name, states = op.inputs["WeightList"][0].name, op.outputs["State"]
    if len(arrays) != 4 or len(states) != 2 or any(graph.is_overwritten(n) for n in (*op.reads(), *op.writes())):
        return False
    # of one step h is all that the layer gives, under two names
    same = [states[0], *op.outputs.get("Out", ())]
    kept = [node for node in same if graph.is_kept(node)] or same[:1]
    if len(kept) > 1:
        return False
    for node in same:
        for reader in node.consumers if node is not kept[0] else ():
            graph.replace_input(reader, node, kept[0])
    w_input, w_state, b_input, b_state = arrays
    values = {"WeightX": w_input.T, "WeightH": w_state.T, "Bias": b_input + b_state}
    made = {slot: [graph.new_parameter(np.ascontiguousarray(a), name)] for slot, a in values.items()}
    inputs = {"X": [x], "PreviousH": [h], "PreviousC": [op.inputs["PreState"][1]]}
    graph.add_op("onednn_lstm_step", inputs | made, {"H": kept, "C": [states[1]]}, before=op)
    graph.remove_op(op)
    return True


def _take(graph: Graph, op: OpNode) -> bool:
    """Parts at known places, as the mirrored edges of a signal are, become onednn_take."""
    x, out = op.input("X"), op.output("Out")
    if x is None or out is None or op.input("Axis") is not None or x.dtype != "float32" or x.shape is None:
        return False
    places, axis = graph.constant_array(op.inputs["Index"][0]), op.attr("axis", 0)
    axis += len(x.shape) if axis < 0 else 0
    if places is None or places.ndim != 1 or not 0 < places.size <= _MOST_PLACES or not 0 <= axis < len(x.shape):
        return False
    if x.shape[axis] < 0 or places.min() < 0 or places.max() >= x.shape[axis]:
        return False
    if graph.is_overwritten(x) or graph.is_overwritten(out):
        return False
    attrs = {"axis": axis, "places": places.tolist()}
    graph.add_op("onednn_take", {"X": [x]}, {"Out": [out]}, attrs, before=op)
    graph.remove_op(op)
    return True


def fuse_recurrent(graph: Graph) -> int:
    """Recurrent layers with what is in front of them, and what else a net has that hears bit by bit."""
    rewrites = {"rnn": _step, "gather": _take}
    return _ROWS(graph) + sum(rewrites[op.type](graph, op) for op in graph.ops if op.type in rewrites)
