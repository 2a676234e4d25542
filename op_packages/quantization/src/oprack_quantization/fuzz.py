"""Blocks of nets that were quantised, for oprack.testing.fuzz: what tools of several years write around a layer."""

from __future__ import annotations

import numpy as np
from oprack import LoDTensor
from oprack.testing.fuzz import Net, block

from oprack_quantization.post_training.integers import weight_scales
from oprack_quantization.post_training.scales import GREATEST


def rounded(net: Net, x: str) -> str:
    """x by a scale that is given, in one of two spellings; the scale may be far too small or too large."""
    scale = _parameter(net, np.array([net.choose(1.0, 0.5, 3.0, 0.02)], np.float32))
    if net.flag():
        attrs = {"is_test": True, "bit_length": 8, "round_type": net.choose(0, 1)}
        y = net.name()
        outputs = {"Out": [y], "OutScale": [scale]}
        net.append("fake_quantize_dequantize_moving_average_abs_max", {"X": [x], "InScale": [scale]}, outputs, attrs)
        return y
    zero, attrs = _parameter(net, np.zeros(1, np.int32)), {"quant_axis": -1, "bit_length": 8, "is_test": True}
    integers = net.op("quantize_linear", {"X": x, "Scale": scale, "ZeroPoint": zero}, attrs, "Y")
    return net.op("dequantize_linear", {"X": integers, "Scale": scale, "ZeroPoint": zero}, attrs, "Y")


def weights(net: Net, shape: list[int], axis: int) -> str:
    """Weights as integers with one scale or one for each channel, or plain floats, which no tool rounded."""
    drawn = net.rng.uniform(-1, 1, shape).astype(np.float32)
    by_channel = net.choose(True, False)
    if net.integer(0, 5) == 5:
        return _parameter(net, drawn)
    scales = weight_scales(drawn, axis if by_channel else None)
    stored = _parameter(net, net.rng.integers(-GREATEST, GREATEST + 1, shape).astype(np.int8))
    scale, zero = _parameter(net, scales), _parameter(net, np.zeros(len(scales), np.int32))
    attrs = {"quant_axis": axis if by_channel else -1, "bit_length": 8, "is_test": True}
    return net.op("dequantize_linear", {"X": stored, "Scale": scale, "ZeroPoint": zero}, attrs, "Y")


def _parameter(net: Net, value: np.ndarray) -> str:
    name = net.param(value.shape, value.dtype.name, "uniform")
    net.params[name] = LoDTensor(value)
    return name


@block(takes="image", gives="image")
def quantized_convolution(net: Net, x: str) -> str:
    """A convolution of integers, plain, in groups or by channel, with what follows it."""
    c = net.channels(x)
    groups = net.choose(1, c, *[g for g in (2,) if c % g == 0])
    channels, width = groups * net.choose(1, 2, 5), net.choose(1, 3, 5)
    attrs = {"strides": [net.choose(1, 2)] * 2, "paddings": [net.choose(width // 2, 0)] * 2, "groups": groups}
    kind = "depthwise_conv2d" if groups == c == channels and c > 1 else "conv2d"
    y = net.op(
        kind, {"Input": rounded(net, x), "Filter": weights(net, [channels, c // groups, width, width], 0)}, attrs
    )
    if net.flag():
        y = net.op("elementwise_add", {"X": y, "Y": net.param([channels])}, {"axis": 1})
    if net.flag() and net.shape(y) == net.shape(x):
        y = net.op("elementwise_add", {"X": y, "Y": x}, {"axis": -1})
    return _activated(net, y)


@block(takes="rows", gives="rows")
def quantized_product(net: Net, x: str) -> str:
    """A product of integers with a bias."""
    inputs, outputs = net.channels(x), net.choose(4, 1, 7, 16)
    kind = net.choose("matmul_v2", "mul")
    y = net.op(kind, {"X": rounded(net, x), "Y": weights(net, [inputs, outputs], 1)})
    if net.flag():
        y = net.op("elementwise_add", {"X": y, "Y": net.param([outputs])}, {"axis": -1})
    return _activated(net, y)


def _activated(net: Net, x: str) -> str:
    kind = net.choose("relu", "", "hard_swish", "tanh")
    return net.op(kind, {"X": x}) if kind else x
