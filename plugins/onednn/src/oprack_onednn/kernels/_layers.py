"""The convolutions of a onednn_conv2d_chain, as its attributes describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oprack.kernel import Array, KernelContext

from oprack_onednn.ops.post_ops import RESIDUAL
from oprack_onednn.ops.precision import is_narrow


class Layer(NamedTuple):
    """One convolution. paddings: above, below, left and right. bias: its place among the biases, or None.

    bfloat16: whether its factors are rounded.
    """

    strides: tuple[int, int]
    paddings: tuple[int, int, int, int]
    groups: int
    bias: int | None
    post_ops: tuple[str, ...]
    bfloat16: bool = False


def by_steps(
    x: Array,
    filters: Sequence[Array],
    biases: Sequence[Array],
    residual: Array | None,
    layers: tuple[Layer, ...],
    ctx: KernelContext,
) -> Array:
    """One convolution after the other."""
    for w, layer in zip(filters, layers, strict=True):
        bias = None if layer.bias is None else biases[layer.bias]
        attrs = dict(strides=list(layer.strides), paddings=list(layer.paddings), groups=layer.groups)
        attrs["post_ops"] = list(layer.post_ops)
        given = {"Input": x, "Filter": w, "Bias": bias, "Residual": residual if RESIDUAL in layer.post_ops else None}
        x = ctx.run_op("onednn_conv2d", given, attrs)
    return x


def layers_of(attrs: Mapping[str, Sequence[int | str]]) -> tuple[Layer, ...]:
    """The convolutions that the op's attributes describe."""
    found, biases, post_ops = [], 0, list(attrs["post_ops"])
    for i, groups in enumerate(attrs["groups"]):
        strides, paddings = attrs["strides"][2 * i : 2 * i + 2], attrs["paddings"][4 * i : 4 * i + 4]
        count = attrs["post_op_counts"][i]
        bias = biases if attrs["biased"][i] else None
        found.append(Layer(tuple(strides), tuple(paddings), groups, bias, tuple(post_ops[:count]), is_narrow(attrs)))
        biases, post_ops = biases + attrs["biased"][i], post_ops[count:]
    return tuple(found)
