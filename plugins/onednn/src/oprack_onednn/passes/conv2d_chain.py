"""Convolutions in a row become one op, which computes them for some rows at a time; so do wide ones of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.ir import Graph, OpNode, VarNode, one_dtype
from oprack.op.families import resolve_pads
from oprack_nn.passes.post_ops import CONVOLUTIONS, precision_attrs

_LONGEST = 8
# Convolutions whose windows overlap: each makes neighbouring parts need more rows of what comes before.
_OVERLAPPING = 2
# Taps in a row for which the step of the chain takes two thirds of the time of oneDNN's primitive.
_WIDE = 7


def _is_link(graph: Graph, op: OpNode) -> bool:
    """Whether a convolution may be part of a chain."""
    if op.opaque or op.hidden_writes or op.type not in (*CONVOLUTIONS, "conv2d_post_ops"):
        return False
    w = op.inputs["Filter"][0]
    if graph.constant(w) is None or op.input("ResidualData") is not None or op.attr("data_format", "NCHW") == "NHWC":
        return False
    bias = op.input("Bias")
    if bias is not None and (op.type in CONVOLUTIONS or graph.constant(bias) is None):
        return False
    explicit = op.attr("padding_algorithm", "EXPLICIT") != "SAME"
    floats = op.outputs["Output"][0].dtype == "float32" and one_dtype([*op.reads(), *op.writes()])
    return explicit and floats and all(d == 1 for d in op.attr("dilations", [1, 1]))


def _follower(graph: Graph, op: OpNode) -> OpNode | None:
    """The one convolution that reads an op's result, and nothing else does."""
    out = op.outputs["Output"][0]
    if op.input("Residual") is not None or graph.is_kept(out) or graph.is_overwritten(out) or len(out.consumers) != 1:
        return None
    (reader,) = out.consumers
    if not _is_link(graph, reader) or reader.input("Input") is not out or reader.input("Residual") is out:
        return None
    return reader


def _overlaps(op: OpNode) -> bool:
    window = op.inputs["Filter"][0].shape
    assert window is not None  # a parameter's
    return any(k > s for k, s in zip(window[2:], op.attr("strides", [1, 1]), strict=True))


def _is_wide(op: OpNode) -> bool:
    """Whether an op pays as a chain of its own: a window of seven taps in a row for each channel."""
    window = op.inputs["Filter"][0].shape
    assert window is not None
    channels, of_each, _, taps = window
    return (of_each, taps, op.attr("strides", [1, 1])[1], op.attr("groups", 1)) == (1, _WIDE, 1, channels)


def _chain_from(graph: Graph, op: OpNode) -> list[OpNode]:
    run = [op]
    while len(run) < _LONGEST:
        reader = _follower(graph, run[-1])
        if reader is None or sum(map(_overlaps, [*run[1:], reader])) > _OVERLAPPING:
            break
        if len(_precisions([*run, reader])) > 1:
            break
        run.append(reader)
    return run


def _precisions(run: Sequence[OpNode]) -> set[tuple[str, str]]:
    """What convolutions say of their precision; the op has one attribute for all of them."""
    return {said for op in run for said in precision_attrs(op).items()}


def _replace(graph: Graph, run: Sequence[OpNode]) -> bool:
    """Put one op in place of a chain; False when a name that it reads gets another value before its end."""
    last = run[-1]
    slots: dict[str, list[VarNode | None]] = {
        "Input": [run[0].input("Input")],
        "Filter": [op.input("Filter") for op in run],
        "Bias": [op.input("Bias") for op in run],
        "Residual": [last.input("Residual")],
    }
    inputs = {slot: [n for n in nodes if n is not None] for slot, nodes in slots.items() if any(nodes)}
    if any(graph.is_overwritten(node) for nodes in inputs.values() for node in nodes):
        return False
    graph.add_op("onednn_conv2d_chain", inputs, {"Output": last.outputs["Output"]}, _attrs(run), before=last)
    for op in reversed(run):
        graph.remove_op(op)
    return True


def _attrs(run: Sequence[OpNode]) -> dict[str, Any]:
    """Attributes of the chain: those of all its convolutions, one after the other."""
    pads = [
        resolve_pads(op.attr("padding_algorithm", "EXPLICIT"), op.attr("paddings", [0, 0]), (0, 0), (), ())
        for op in run
    ]
    post_ops = [op.attr("post_ops", []) for op in run]
    return {
        "biased": [int(op.input("Bias") is not None) for op in run],
        "groups": [op.attr("groups", 1) for op in run],
        "strides": [s for op in run for s in op.attr("strides", [1, 1])],
        "paddings": [p for pairs in pads for pair in pairs for p in pair],
        "post_op_counts": list(map(len, post_ops)),
        "post_ops": [text for texts in post_ops for text in texts],
        **dict(_precisions(run)),
    }


def chain_convolutions(graph: Graph) -> int:
    """Convolutions in a row."""
    count, done = 0, set()
    for op in graph.ops:
        if op in done or not _is_link(graph, op):
            continue
        run = _chain_from(graph, op)
        done.update(run)
        count += (len(run) > 1 or _is_wide(op)) and _replace(graph, run)
    return count
