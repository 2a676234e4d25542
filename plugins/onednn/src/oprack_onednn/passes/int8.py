"""Convolutions and products whose factors a program quantises multiply bytes, for who asked for it.

Quantisation is known by what it does. An input went through an op that rounds it to multiples of one number, its step,
and back; weights, whatever made them, are multiples of a step for each channel. All spellings of tools come to that
once constants are folded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from oprack.ir import Graph, OpNode, VarNode
from oprack.ir.generic import remove_dead_code
from oprack_nn.ops.with_post_ops import WINDOW
from oprack_nn.passes.post_ops import CONVOLUTIONS, PRODUCTS, plain_product, product_attrs

from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.ops.quantized import GREATEST, LEAST

_CONVOLUTION, _PRODUCT = "onednn_quantized_conv2d", "onednn_quantized_matmul"
# The slots of input and result of an op on bytes.
_SLOTS = {_CONVOLUTION: ("Input", "Output"), _PRODUCT: ("X", "Out")}
# Ops that round and restore in one, by a scale that is given.
_ROUNDING = ("fake_quantize_dequantize_moving_average_abs_max",)
ROUNDING_ALONE = ("fake_quantize_range_abs_max", "fake_quantize_moving_average_abs_max")
"""Ops that give integers as floats, by such a scale."""
# How far a weight may be from a multiple of its step, in steps: it was multiplied in float32 on its way.
_NEAR = 1e-3
# Weights of a channel by which most steps are found not to fit.
_SAMPLE = 32


def convolutions(graph: Graph) -> int:
    """Convolutions of what was quantised, fused with what follows them or not."""
    return _rewrite(graph, _as_convolution)


def products(graph: Graph) -> int:
    """Products of what was quantised with weights."""
    return _rewrite(graph, _as_product)


def _rewrite(graph: Graph, make: Callable[[Graph, OpNode], bool]) -> int:
    if not LIBRARY.has_int8():
        return 0
    sources = [op.input(slot) for op in graph.ops for slot in ("Input", "X")]
    count = sum(make(graph, op) for op in graph.ops)
    if count:
        for node in sources:
            remove_rounding(graph, node)
        remove_dead_code(graph)
    return count


# Inputs ---------------------------------------------------------------------------------------------------------------
def rounded_input(graph: Graph, node: VarNode | None) -> tuple[VarNode, float] | None:
    """(What was rounded to multiples of a step, the step) where a variable is that; else None."""
    op = None if node is None else node.producer
    if op is None or op.opaque:
        return None
    if op.type in _ROUNDING:
        return checked_scale(graph, op, op.input("X"), op.input("InScale"))
    first = op.input("X")
    if op.type != "dequantize_linear" or first is None or first.producer is None:
        return None
    back, there = checked_scale(graph, op, first, op.input("Scale")), first.producer
    by_channel = any(known_attr(graph, o, "quant_axis") >= 0 for o in (op, there) if o.type.endswith("_linear"))
    if there.type != "quantize_linear" or there.opaque or by_channel:
        return None
    found = checked_scale(graph, there, there.input("X"), there.input("Scale"))
    return found if found is not None and back is not None and back[1] == found[1] else None


def checked_scale(graph: Graph, op: OpNode, x: VarNode | None, scale: VarNode | None) -> tuple[VarNode, float] | None:
    """An input with its step, where the op takes the scale as it is, and it is one number for 8 bits."""
    if x is None or scale is None or known_attr(graph, op, "bit_length") != 8 or not known_attr(graph, op, "is_test"):
        return None
    if known_attr(graph, op, "only_observer") or graph.is_overwritten(x):
        return None
    value = graph.constant_array(scale, [op])
    if value is None or value.size != 1 or value.dtype != np.float32:
        return None
    step = float(value.reshape(-1)[0]) / GREATEST
    # Numbers far below what floats hold would be divided by 0, and their ops add something to such a scale.
    return (x, step) if 1e-30 < step < np.inf else None


def known_attr(graph: Graph, op: OpNode, name: str) -> Any:
    """An attribute as the op gives it, or its default; None where it has no such attribute."""
    known = graph.manager.op_info(op.type).proto.attrs.get(name)
    return op.attr(name, None if known is None else known.default)


def remove_rounding(graph: Graph, node: VarNode | None) -> None:
    """Take an op out that rounds and restores, when nobody reads what it gives: it writes its scale back as it was."""
    op = None if node is None else node.producer
    if (
        op is None
        or op.type not in (*_ROUNDING, *ROUNDING_ALONE)
        or op not in graph.ops
        or not known_attr(graph, op, "is_test")
    ):
        return
    if any(n.consumers or graph.is_kept(n) for n in op.outputs["Out"]):
        return
    given = {n.name for nodes in op.inputs.values() for n in nodes}
    if all(n.name in given and not n.consumers for s, nodes in op.outputs.items() if s != "Out" for n in nodes):
        graph.remove_op(op)


# Weights --------------------------------------------------------------------------------------------------------------
def multiples(w: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Weights as integers and the steps of their channels; None when some channel has no step that fits.

    w: [channels, weights].

    Returns:
        int8 [channels, weights], and float32 [channels].
    """
    rows = w.astype(np.float64)
    greatest = np.abs(rows).max(axis=1, initial=0.0)
    if not np.isfinite(greatest).all():
        return None
    steps = np.where(greatest > 0, 0.0, 1.0)
    # the greatest one stands for 127 where a channel has a scale of its own, else for some other number
    for integer in (GREATEST, -LEAST, *range(GREATEST - 1, 0, -1)):
        open_ = np.flatnonzero(steps == 0)
        if not len(open_):
            break
        step = greatest[open_] / integer
        likely = _fits(rows[open_, :_SAMPLE], step)
        open_, step = open_[likely], step[likely]
        fitting = _fits(rows[open_], step)
        steps[open_[fitting]] = step[fitting]
    if not steps.all():
        return None
    return np.rint(rows / steps[:, None]).astype(np.int8), steps.astype(np.float32)


def _fits(rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """For each row whether its numbers are integers of a byte times its step."""
    found = rows / steps[:, None]
    nearest = np.rint(found)
    near = np.abs(found - nearest) <= _NEAR
    fits: np.ndarray = (near & (nearest >= LEAST) & (nearest <= GREATEST)).all(axis=1)
    return fits


# Ops ------------------------------------------------------------------------------------------------------------------
def _as_convolution(graph: Graph, op: OpNode) -> bool:
    if op.type not in (*CONVOLUTIONS, "conv2d_post_ops") or op.opaque or op.attr("data_format", "NCHW") == "NHWC":
        return False
    found, w = rounded_input(graph, op.input("Input")), _floats(graph, op.input("Filter"), 4)
    if found is None or w is None or not _plain_operands(graph, op, "Output"):
        return False
    grid = multiples(w.reshape(len(w), -1))
    if grid is None:
        return False
    attrs = {name: known_attr(graph, op, name) for name in WINDOW}
    _replace(graph, op, _CONVOLUTION, found, "Filter", grid[0].reshape(w.shape), grid[1], attrs)
    return True


def _as_product(graph: Graph, op: OpNode) -> bool:
    fused = op.type == "matmul_post_ops"
    if op.opaque or not (fused or (op.type in PRODUCTS and plain_product(op))):
        return False
    found, w = rounded_input(graph, op.input("X")), _floats(graph, op.input("Y"), 2)
    if found is None or w is None or not _plain_operands(graph, op, "Out"):
        return False
    grid = multiples(w.T)
    if grid is None:
        return False
    _replace(graph, op, _PRODUCT, found, "Y", np.ascontiguousarray(grid[0].T), grid[1], product_attrs(op))
    return True


def _floats(graph: Graph, node: VarNode | None, rank: int) -> np.ndarray | None:
    value = None if node is None else graph.constant_array(node)
    return value if value is not None and value.dtype == np.float32 and value.ndim == rank and value.size else None


def _plain_operands(graph: Graph, op: OpNode, out: str) -> bool:
    """Whether bias, residual and result are float32, and there is nothing that an op on bytes has no slot for."""
    result, residual = op.output(out), op.input("Residual")
    if result is None or any(op.input(slot) is not None for slot in ("ResidualData", "InputScale", "OutputScale")):
        return False
    bias = op.input("Bias")
    if bias is not None and (_vector(graph, bias) is None or op.attr("post_ops") is None):
        return False
    return result.dtype == "float32" and (residual is None or residual.dtype == "float32")


def _vector(graph: Graph, node: VarNode) -> np.ndarray | None:
    value = graph.constant_array(node)
    fits = value is not None and value.dtype == np.float32 and value.ndim == 1 and np.isfinite(value).all()
    return value if fits else None


def _replace(
    graph: Graph,
    op: OpNode,
    kind: str,
    found: tuple[VarNode, float],
    slot: str,
    weights: np.ndarray,
    steps: np.ndarray,
    attrs: dict[str, Any],
) -> None:
    """Put an op on bytes in place of one on floats."""
    x, step = found
    given, out = _SLOTS[kind]
    name = op.inputs[slot][0].name
    inputs = {
        given: [x],
        slot: [graph.new_parameter(weights, name)],
        "FilterStep": [graph.new_parameter(steps, name)],
        **{s: op.inputs[s] for s in ("Bias", "Residual") if op.input(s) is not None},
    }
    attrs |= {"post_ops": op.attr("post_ops", []), "input_step": step}
    graph.add_op(kind, inputs, {out: op.outputs[out]}, attrs, before=op)
    graph.remove_op(op)


# Between ops ----------------------------------------------------------------------------------------------------------
def join(graph: Graph) -> int:
    """Results that only ops on bytes read, all with one step, are bytes."""
    return sum(_join(graph, op) for op in graph.ops if op.type in _SLOTS)


def _join(graph: Graph, op: OpNode) -> bool:
    out = _SLOTS[op.type][1]
    node = op.outputs[out][0]
    steps = set(_steps_of_readers(node))
    if len(steps) != 1 or None in steps or graph.is_kept(node) or graph.is_overwritten(node) or op.attr("output_step"):
        return False
    readers, new = node.consumers, graph.new_var(node.name)
    graph.add_op(op.type, op.inputs, {out: [new]}, {**op.desc.attrs, "output_step": steps.pop()}, before=op)
    for reader in readers:
        graph.replace_input(reader, node, new)
    graph.remove_op(op)
    return True


def _steps_of_readers(node: VarNode) -> Iterator[float | None]:
    """The step of each op that reads it as its input; None for one that reads something else than that."""
    for reader in node.consumers:
        slots: Sequence[str] = [slot for slot, nodes in reader.inputs.items() if node in nodes]
        own = _SLOTS.get(reader.type, ("", ""))[0]
        yield reader.attr("input_step") if slots == [own] else None


_RESTORING = ("fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs")


def restore_factors(graph: Graph) -> int:
    """Convolutions and products between ops that round and restore, where int8 has primitives."""
    if not LIBRARY.has_int8():
        return 0
    return sum(_restore(graph, op) for op in graph.ops if op.type in _RESTORING)


def _restore(graph: Graph, op: OpNode) -> bool:
    y, out = op.input("X"), op.output("Out")
    layer = None if y is None else y.producer
    if y is None or layer is None or out is None or layer.opaque or op.opaque:
        return False
    if y.consumers != [op] or graph.is_kept(y):
        return False
    slots = ("Input", "Filter") if layer.type in CONVOLUTIONS else ("X", "Y")
    if layer.type not in CONVOLUTIONS and not (layer.type in PRODUCTS and plain_product(layer)):
        return False
    x, weight = (layer.inputs[slot][0] for slot in slots)
    there, w = x.producer, graph.constant_array(weight)
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
