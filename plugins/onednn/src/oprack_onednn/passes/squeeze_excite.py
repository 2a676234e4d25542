"""Squeeze and excitation: the scale in one op, and no pass over the images to multiply them by it.

s = q(conv(p(conv(mean(x)))))       one op
conv(x * s)                         the weights take the scale, image by image
conv(x) * s(conv(x))                mean(conv(x)) = conv(mean(x)): s is known first, and scales inside the product
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.ir import Graph, Match, NewVar, OpNode, PatternBuilder, VarNode, fusion
from oprack.ir.pattern import OpPattern
from oprack_nn.ops.post_ops import RESIDUAL
from oprack_nn.passes.post_ops import CONVOLUTIONS, with_extras

_SQUEEZE = "onednn_squeeze_excite"
_POINTWISE = "onednn_pointwise_conv2d"
_BIASES = {"ReduceBias": "reduce_bias", "ExpandBias": "expand_bias"}


def _is_pointwise(op: OpNode) -> bool:
    """Whether a convolution is a product of each pixel's channels with a matrix."""
    if op.attr("groups", 1) != 1 or op.attr("data_format", "NCHW") == "NHWC":
        return False
    w = op.inputs["Filter"][0].shape
    unpadded = op.attr("padding_algorithm", "EXPLICIT") != "EXPLICIT" or not any(op.attr("paddings", [0, 0]))
    return w is not None and tuple(w[2:]) == (1, 1) and unpadded and all(s == 1 for s in op.attr("strides", [1, 1]))


def _is_plain(op: OpNode) -> bool:
    """Whether only activations follow a pointwise convolution."""
    return _is_pointwise(op) and RESIDUAL not in op.attr("post_ops", [])


def _is_linear(op: OpNode) -> bool:
    return _is_pointwise(op) and not op.attr("post_ops", [])


def _takes_mean(op: OpNode) -> bool:
    """Whether pooling gives the mean of each channel."""
    if op.attr("pooling_type", "max") != "avg" or op.attr("data_format", "NCHW") == "NHWC":
        return False
    return op.attr("global_pooling", False) or (op.attr("adaptive", False) and list(op.attr("ksize", [])) == [1, 1])


def _either(p: PatternBuilder, x: Any, name: str, where: Callable[..., Any]) -> tuple[OpPattern, ...]:
    """Patterns of a convolution with filter `name` and perhaps a bias, fused or not."""
    return (
        p.op(CONVOLUTIONS, Input=x, Filter=p.param(name), where=where),
        p.op("conv2d_post_ops", Input=x, Filter=p.param(name), where=where),
        p.op("conv2d_post_ops", Input=x, Filter=p.param(name), Bias=p.param(f"{name}_bias"), where=where),
    )


def _found(m: Match, patterns: tuple[OpPattern, ...]) -> OpNode:
    return m.op_of(next(pattern for pattern in patterns if m.has(pattern)))


def _bias(m: Match, op: OpNode, name: str) -> VarNode | None:
    """The bias of a convolution that _either found; None when it has none."""
    return m[f"{name}_bias"] if op.input("Bias") is not None else None


@fusion("onednn_squeeze")
def squeeze(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """q(conv(p(conv(mean(x)))))  ->  onednn_squeeze_excite(x)"""
    mean = p.op("pool2d", X="x", where=_takes_mean)
    reduce = _either(p, mean, "reduce", _is_plain)
    expand = _either(p, p.either(*reduce), "expand", _is_plain)

    def build(m: Match) -> NewVar | None:
        first, last = _found(m, reduce), _found(m, expand)
        attrs = {"reduce_post_ops": first.attr("post_ops", []), "expand_post_ops": last.attr("post_ops", [])}
        biases: dict[str, Any] = {"ReduceBias": _bias(m, first, "reduce"), "ExpandBias": _bias(m, last, "expand")}
        return m.op(_SQUEEZE, X=m["x"], Reduce=m["reduce"], Expand=m["expand"], **biases, attrs=attrs)

    return p.either(*expand), build


def _scale_of(p: PatternBuilder, x: Any) -> OpPattern:
    """Pattern of the scale of x."""
    biases: dict[str, Any] = {slot: p.param(name, optional=True) for slot, name in _BIASES.items()}
    return p.op(_SQUEEZE, X=x, Reduce=p.param("reduce"), Expand=p.param("expand"), **biases)


@fusion("onednn_scaled_result")
def scaled_result(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """conv(x) * s(conv(x))  ->  conv(x) * s'(x), where s' starts with the convolution's weights times its own"""
    conv = _either(p, "x", "w", _is_linear)
    linear = p.either(*conv)
    scale = _scale_of(p, linear)
    root = p.op("elementwise_mul", X=linear, Y=scale, attrs={"axis": -1})

    def build(m: Match) -> NewVar | None:
        op, se = _found(m, conv), m.op_of(scale)
        w, reduce = m.value("w"), m.value("reduce")
        if w.shape[0] != m.value("expand").shape[0]:
            return None
        matrix = reduce[:, :, 0, 0].astype(np.float64)
        slots: dict[str, Any] = {"Reduce": m.new_param((matrix @ w[:, :, 0, 0])[:, :, None, None], like="reduce")}
        bias = _bias(m, op, "w")
        shift = m.value("reduce_bias")
        if bias is not None:
            moved = matrix @ m.value("w_bias").reshape(-1)
            slots["ReduceBias"] = m.new_param(moved if shift is None else moved + shift, like="w_bias")
        elif shift is not None:
            slots["ReduceBias"] = m["reduce_bias"]
        after = m["expand_bias"] if m.has("expand_bias") else None
        s = m.op(_SQUEEZE, X=m["x"], **slots, Expand=m["expand"], ExpandBias=after, attrs=m.attrs(se))
        return m.op(_POINTWISE, Input=m["x"], Filter=m["w"], Bias=bias, OutputScale=s)

    return root, build


@fusion("onednn_scaled_input")
def scaled_input(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """conv(x * s)  ->  the convolution with s as the scale of its input"""
    scaled = p.op("elementwise_mul", X="x", Y="s", attrs={"axis": -1}, commutative=True)
    conv = with_extras(p, scaled, _is_pointwise)

    def build(m: Match) -> NewVar | None:
        op, x, s = m.root, m["x"].shape, m["s"].shape
        if x is None or s is None or len(x) != 4 or tuple(s[1:]) != (x[1], 1, 1) or s[0] != x[0] or m["s"].persistable:
            return None
        more: dict[str, Any] = {slot: op.input(slot) for slot in ("Bias", "Residual")}
        attrs = {"post_ops": op.attr("post_ops", [])}
        return m.op(_POINTWISE, Input=m["x"], Filter=m["w"], InputScale=m["s"], attrs=attrs, **more)

    return p.either(*conv), build


_ROWS = squeeze + scaled_result + scaled_input


def fuse_squeeze_excite(graph: Graph) -> int:
    """Squeeze and excitation."""
    return _ROWS(graph)
