"""Programs of older tools multiply integers that floats hold, and restore the product: here they restore the factors.

out = layer(round(127 x / s), w) s / r  ->  out = layer(round(127 x / s) s / 127, w 127 / r), as newer tools write it.
"""

from __future__ import annotations

import numpy as np
from oprack.ir import Graph, OpNode, VarNode

from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.ops.quantized import GREATEST
from oprack_onednn.passes.fuse import CONVOLUTIONS, PRODUCTS, plain_product
from oprack_onednn.passes.int8 import ROUNDING_ALONE, checked_scale, known_attr, remove_rounding

_RESTORING = ("fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs")


def restore_factors(graph: Graph) -> int:
    """Convolutions and products between ops that round and restore, where int8 has primitives."""
    if not LIBRARY.usable() or not LIBRARY.has_int8():
        return 0
    return sum(_restore(graph, op) for op in graph.ops if op.type in _RESTORING)


def _restore(graph: Graph, op: OpNode) -> bool:
    y, out = op.input("X"), op.output("Out")
    layer = None if y is None else y.producer
    if layer is None or out is None or layer.opaque or op.opaque or y.consumers != [op] or graph.is_kept(y):
        return False
    slots = ("Input", "Filter") if layer.type in CONVOLUTIONS else ("X", "Y")
    if layer.type not in CONVOLUTIONS and not (layer.type in PRODUCTS and plain_product(layer)):
        return False
    x, weight = (layer.input(slot) for slot in slots)
    there = None if x is None else x.producer
    w = None if weight is None else graph.constant_array(weight)
    if there is None or there.type not in ROUNDING_ALONE or there.opaque or w is None:
        return False
    found = checked_scale(graph, there, there.input("X"), there.input("InScale"))
    steps = _steps(graph, op, w, there)
    if found is None or steps is None or not graph.replace_var(out, y):
        return False
    graph.replace_input(layer, weight, graph.new_parameter((w * steps).astype(np.float32), weight.name))
    graph.replace_input(layer, x, _restored(graph, layer, there))
    graph.remove_op(op)
    remove_rounding(graph, x)
    return True


def _restored(graph: Graph, layer: OpNode, there: OpNode) -> VarNode:
    """What the input is a rounding of, rounded and restored by the same scale; a new op before the layer."""
    made = graph.new_var(there.outputs["Out"][0].name)
    inputs = {"X": there.inputs["X"], "InScale": there.inputs["InScale"]}
    outputs = {"Out": [made], "OutScale": [graph.new_var(there.inputs["InScale"][0].name)]}
    attrs = {"is_test": True, "bit_length": 8, "round_type": known_attr(graph, there, "round_type")}
    graph.add_op("fake_quantize_dequantize_moving_average_abs_max", inputs, outputs, attrs, before=layer)
    return made


def _steps(graph: Graph, op: OpNode, w: np.ndarray, there: OpNode) -> np.ndarray | None:
    """By what to multiply the weights, ready to broadcast; None where the op restores something else."""
    slot = "Scale" if op.type == _RESTORING[0] else "Scales"
    *others, last = op.inputs[slot]
    own, given = (graph.constant_array(node, [there]) for node in (there.inputs["InScale"][0], last))
    if own is None or (
        last.producer is not there and (given is None or not np.array_equal(own.ravel(), given.ravel()))
    ):
        return None
    if slot == "Scale":
        return np.array(GREATEST / known_attr(graph, op, "max_range"))
    channels = graph.constant_array(others[0]) if len(others) == 1 else None
    if channels is None or list(known_attr(graph, op, "quant_bits"))[:2] != [8, 8]:
        return None
    # channels lie along the first dim of a filter, and along the last one of a matrix
    if channels.size != w.shape[0 if w.ndim == 4 else -1]:
        return None
    return channels.reshape(-1, *(1,) * (w.ndim - 1) if w.ndim == 4 else ()).astype(np.float64) / GREATEST
