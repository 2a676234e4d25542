"""Affine ops before and after a convolution become part of its weights and of one addition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.ir import Match, NewVar, OpNode, PatternBuilder, VarNode, fusion
from oprack.kernel import Array
from oprack.op.families import pad_pairs

from oprack_nn.ops._layout import is_channel_last
from oprack_nn.passes._affine import affine_of, affine_ops, per_channel, representable

if TYPE_CHECKING:
    from oprack_nn.passes._affine import Numbers

CONVOLUTIONS = ("conv2d", "depthwise_conv2d", "conv3d")
TRANSPOSED = ("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")


def _geometry(m: Match, conv: Any) -> tuple[int, int, int, bool]:
    """(rank, channel dim, groups, whether it is transposed) of a convolution's operands."""
    rank = m.value("w").ndim
    channel = rank - 1 if is_channel_last(m.attr(conv, "data_format")) else 1
    return rank, channel, m.attr(conv, "groups"), m.op_of(conv).type in TRANSPOSED


def _times_output(w: Array, a: Numbers, groups: int, transposed: bool) -> Array:
    """Weights that give a times the output, a per output channel, as float64."""
    if a.ndim == 0:
        return np.multiply(w, a, dtype=np.float64)
    if not transposed:
        return np.multiply(w, a.reshape(-1, *[1] * (w.ndim - 1)), dtype=np.float64)
    inputs, outputs = w.shape[:2]
    split = w.reshape(groups, inputs // groups, outputs, *w.shape[2:])
    a = a.reshape(groups, 1, outputs, *[1] * (w.ndim - 2))
    return np.multiply(split, a, dtype=np.float64).reshape(w.shape)


def _times_input(w: Array, a: Numbers, groups: int) -> Array:
    """Weights of a convolution that takes x for a x, a per input channel, as float64."""
    if a.ndim == 0:
        return np.multiply(w, a, dtype=np.float64)
    split = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    a = a.reshape(groups, 1, w.shape[1], *[1] * (w.ndim - 2))
    return np.multiply(split, a, dtype=np.float64).reshape(w.shape)


def _outputs(w: Array, groups: int, transposed: bool) -> int:
    return w.shape[1] * groups if transposed else w.shape[0]


def _convolved(m: Match, conv: Any, x: VarNode, w: Array | None) -> NewVar | None:
    """The convolution of x by new weights, or by the same for None; None when they are too large for the dtype."""
    if w is not None and not representable(w, m.value("w")):
        return None
    weights = m["w"] if w is None else m.new_param(w, like="w")
    return m.op(m.op_of(conv).type, Input=x, Filter=weights, attrs=m.attrs(conv))


def _plus(m: Match, out: NewVar | VarNode | None, b: Numbers, channel: int, outputs: int) -> NewVar | VarNode | None:
    """A convolution plus b per output channel; None when there is none, or b is too large for the dtype."""
    if out is None or not representable(b, m.value("w")):
        return None
    if not b.any():
        return out
    bias = b if b.ndim else np.full(outputs, b)
    return m.op("elementwise_add", X=out, Y=m.new_param(bias, like="w"), attrs={"axis": channel})


@fusion("fold_affine_after_conv")
def fold_affine_after_conv(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """a (conv(x, w) + b) + c  ->  conv(x, a w) + (a b + c)"""
    conv = p.op((*CONVOLUTIONS, *TRANSPOSED), Input="x", Filter=p.param("w"))
    biased = p.op("elementwise_add", X=conv, Y=p.param("b"), commutative=True)
    bias = p.maybe(biased)

    def build(m: Match) -> NewVar | VarNode | None:
        rank, channel, groups, transposed = _geometry(m, conv)
        w = m.value("w")
        outputs = _outputs(w, groups, transposed)
        b = per_channel(m.value("b"), m.attr(bias, "axis"), rank, channel) if m.has(bias) else np.float64(0)
        affine = affine_of(m, m.root, rank, channel)
        if b is None or affine is None or ((affine[0] == 1).all() and not m.has(bias)):
            return None
        a, c = affine
        if any(v.ndim and v.size != outputs for v in (a, b, c)):
            return None
        if (a == 1).all():  # the convolution stays
            return _plus(m, m.op_of(conv).output("Output"), a * b + c, channel, outputs)
        out = _convolved(m, conv, m["x"], _times_output(w, a, groups, transposed))
        return _plus(m, out, a * b + c, channel, outputs)

    return p.either(*affine_ops(p, bias, biased)), build


@fusion("fold_affine_before_conv")
def fold_affine_before_conv(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """conv(a x + c, w)  ->  conv(x, a w) + conv(c, w), where padding adds no zeros or c is 0"""
    before = affine_ops(p, "x")
    conv = p.op(CONVOLUTIONS, Input=p.either(*before), Filter=p.param("w"))

    def build(m: Match) -> NewVar | VarNode | None:
        rank, channel, groups, _ = _geometry(m, conv)
        op, w = next(m.op_of(op) for op in before if m.has(op)), m.value("w")
        affine = affine_of(m, op, rank, channel)
        inputs = w.shape[1] * groups
        if affine is None or not _keeps_shape(m["x"], op, rank, channel, inputs):
            return None
        if any(v.ndim and v.size != inputs for v in affine):
            return None
        a, c = affine
        if c.any() and _pads(m, conv, rank):
            return None
        b = _times_input(w, c, groups).reshape(w.shape[0], -1).sum(axis=1) if c.any() else np.float64(0)
        out = _convolved(m, conv, m["x"], None if (a == 1).all() else _times_input(w, a, groups))
        return _plus(m, out, b, channel, w.shape[0])

    return conv, build


def _keeps_shape(x: VarNode, op: OpNode, rank: int, channel: int, inputs: int) -> bool:
    """Whether what an affine op makes has x's shape: a constant may be larger."""
    if not op.type.startswith("elementwise"):
        return True
    if x.shape is None or len(x.shape) != rank:
        return False
    others = [n.shape for n in op.reads() if n is not x]
    return x.shape[channel] == inputs or all(dims is not None and math.prod(dims) == 1 for dims in others)


@fusion("fold_scale_before_padded_conv")
def fold_scale_before_padded_conv(p: PatternBuilder) -> tuple[Any, Callable[..., Any]]:
    """conv(a x + c, w)  ->  conv(x + c / a, a w): padding adds zeros after c, so only the factor moves"""
    scaled = p.op("elementwise_mul", X="x", Y=p.param("a"), commutative=True)
    shifted = p.op("elementwise_add", X=scaled, Y=p.param("c"), commutative=True)
    conv = p.op(CONVOLUTIONS, Input=shifted, Filter=p.param("w"))

    def build(m: Match) -> NewVar | None:
        a, c, w = m.value("a"), m.value("c"), m.value("w")
        if a.size != 1 or c.size != 1 or a.dtype.kind != "f":
            return None
        if m["x"].shape is None or max(a.ndim, c.ndim) > len(m["x"].shape):
            return None
        shift = np.float64(c.item()) / np.float64(a.item()) if a.item() else np.inf
        if not np.abs(shift) < np.finfo(c.dtype).max / 2:
            return None
        x = m.op("elementwise_add", X=m["x"], Y=m.new_param(np.full(c.shape, shift), like="c"), attrs=m.attrs(shifted))
        scaled_w = w.astype(np.float64) * np.float64(a.item())
        if not representable(scaled_w, w):
            return None
        return m.op(m.root.type, Input=x, Filter=m.new_param(scaled_w, like="w"), attrs=m.attrs(conv))

    return conv, build


def _pads(m: Match, conv: Any, rank: int) -> bool:
    """Whether a convolution adds zeros around its input."""
    algorithm = m.attr(conv, "padding_algorithm")
    if algorithm == "SAME":
        return True
    pads = pad_pairs(m.attr(conv, "paddings"), rank - 2)
    return algorithm != "VALID" and any(side for pair in pads for side in pair)


fold_affine_into_conv = fold_affine_after_conv + fold_affine_before_conv + fold_scale_before_padded_conv
