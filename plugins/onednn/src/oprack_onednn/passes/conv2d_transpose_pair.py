"""Two transposed convolutions in a row whose tiles do not overlap become one op, without an image between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.ir import Graph, Match, NewVar, OpNode, PatternBuilder, fusion
from oprack.ir.pattern import OpPattern

_TYPES = ("conv2d_transpose_post_ops", "conv2d_transpose")


def _makes_tiles(op: OpNode) -> bool:
    """Whether each pixel becomes a tile of its own."""
    w, groups = op.inputs["Filter"][0], op.attr("groups", 1)
    plain = op.attr("data_format", "NCHW") != "NHWC" and op.attr("padding_algorithm", "EXPLICIT") != "SAME"
    if not plain or groups != 1 or w.shape is None or op.attr("dilations", [1, 1]) != [1, 1]:
        return False
    if any(op.attr("paddings", [0, 0])) or any(op.attr("output_padding", [])) or op.attr("output_size", []):
        return False
    return list(w.shape[2:]) == list(op.attr("strides", [1, 1])) and op.inputs["Input"][0].dtype == "float32"


def _pair(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    def tiles(x: Any, w: str, bias: str) -> OpPattern:
        return p.op(_TYPES, Input=x, Filter=p.param(w), Bias=p.param(bias, optional=True), where=_makes_tiles)

    first = tiles("x", "w", "b")
    second = tiles(first, "v", "d")

    def build(m: Match) -> NewVar:
        one, two = m.op_of(first), m.op_of(second)
        attrs = {"post_ops": one.attr("post_ops", []), "next_post_ops": two.attr("post_ops", [])}
        more: dict[str, Any] = {slot: m[name] for slot, name in (("Bias", "b"), ("NextBias", "d")) if m.has(name)}
        slots: dict[str, Any] = {"Input": m["x"], "Filter": m["w"], "NextFilter": m["v"]}
        return m.op("onednn_conv2d_transpose_pair", attrs=attrs, **slots, **more)

    return second, build


_PAIR = fusion("onednn_pair_conv2d_transpose")(_pair)


def pair_conv2d_transpose(graph: Graph) -> int:
    """Pairs of transposed convolutions."""
    return _PAIR(graph)
