"""Layers as functions, with Paddle's parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
import oprack.nn.functional as NF
from oprack import functional as F

from oprack_paddle.functions._tools import plain
from oprack_paddle.functions.pooling import spatial

Tensor = Any


def batch_norm(
    x: Tensor, running_mean: Tensor, running_var: Tensor, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.9, epsilon: float = 1e-05, data_format: str = "NCHW", use_global_stats: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Each channel, normalized by the batch in training and by the running statistics otherwise, which it writes."""
    layout = "NHWC" if data_format in ("NHWC", "NLC", "NDHWC") else "NCHW"
    running = not training if use_global_stats is None else use_global_stats
    found = F.batch_norm(
        x, running_mean, running_var, weight, bias, is_test=not training, momentum=momentum, epsilon=epsilon,
        data_layout=layout, use_global_stats=bool(running), in_place={"Mean": "MeanOut", "Variance": "VarianceOut"},
    )  # fmt: skip
    return found[0] if isinstance(found, tuple) else found


def layer_norm(
    x: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, epsilon: float = 1e-05, name: Any = None
) -> Tensor:
    """Normalized over the last dims."""
    return NF.layer_norm(
        x, [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape), weight, bias, epsilon
    )


def group_norm(
    x: Tensor,
    num_groups: int,
    epsilon: float = 1e-05,
    weight: Any = None,
    bias: Any = None,
    data_format: str = "NCHW",
    name: Any = None,
) -> Tensor:
    """Normalized over groups of channels."""
    shape = list(x.shape)
    last = data_format in ("NHWC", "NLC", "NDHWC")
    if x.ndim != 4:
        flat = [shape[0], -1, 1, shape[-1]] if last else [shape[0], shape[1], -1, 1]
        x = x.reshape(flat)
    found = F.group_norm(x, weight, bias, epsilon=epsilon, groups=num_groups, data_layout="NHWC" if last else "NCHW")
    found = found[0] if isinstance(found, tuple) else found
    return found.reshape(shape)


def instance_norm(
    x: Tensor, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.9, eps: float = 1e-05, data_format: str = "NCHW",
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Each channel of each example, normalized."""
    found = F.instance_norm(x, weight, bias, epsilon=eps)
    return found[0] if isinstance(found, tuple) else found


def local_response_norm(
    x: Tensor,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    data_format: str = "NCHW",
    name: Any = None,
) -> Tensor:
    """Divided by the mean square over neighbouring channels."""
    last = data_format[-1] == "C"
    if last:
        x = x.transpose([0, x.ndim - 1, *range(1, x.ndim - 1)])
    shape = list(x.shape)
    squares = (x * x).reshape([shape[0], 1, shape[1], -1])
    pad = F.pad(squares, paddings=[0, 0, 0, 0, size // 2, (size - 1) // 2, 0, 0])
    total = NF.avg_pool2d(pad, [size, 1], stride=1, padding=0)
    found = x / ((total.reshape(shape) * alpha + k) ** beta)
    return found.transpose([0, *range(2, x.ndim), 1]) if last else found


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Any = None, name: Any = None) -> Tensor:
    """x1 times a matrix times x2, one matrix for each output."""
    return F.bilinear_tensor_product(x1, x2, weight, bias)


def alpha_dropout(x: Tensor, p: float = 0.5, training: bool = True, name: Any = None) -> Tensor:
    """Dropout that keeps mean and variance of what selu gives."""
    if not training or p == 0:
        return oprack.clone(x)
    low = -1.7580993408473766
    if p == 1:
        return x * 0.0
    a = ((1 - p) * (1 + p * low**2)) ** -0.5
    keep = (F.uniform_random(shape=list(x.shape), dtype=x.dtype, min=0.0, max=1.0) >= p).astype(x.dtype)
    return (x * keep + (1 - keep) * low) * a - a * p * low


def relu6(x: Tensor, name: Any = None) -> Tensor:
    """Cut to between 0 and 6."""
    return F.relu6(x)


def elu(x: Tensor, alpha: float = 1.0, name: Any = None) -> Tensor:
    """x above zero, alpha * (exp(x) - 1) below."""
    return F.elu(x, alpha=alpha)


def celu(x: Tensor, alpha: float = 1.0, name: Any = None) -> Tensor:
    """The smooth relu celu."""
    return F.celu(x, alpha=alpha)


def hardtanh(x: Tensor, min: float = -1.0, max: float = 1.0, name: Any = None) -> Tensor:
    """Cut to between two numbers."""
    return F.brelu(x, t_min=min, t_max=max)


def hardsigmoid(x: Tensor, slope: float = 0.1666667, offset: float = 0.5, name: Any = None) -> Tensor:
    """slope * x + offset, cut to between 0 and 1."""
    return F.hard_sigmoid(x, slope=slope, offset=offset)


def hardshrink(x: Tensor, threshold: float = 0.5, name: Any = None) -> Tensor:
    """Zero where x is small."""
    return F.hard_shrink(x, threshold=threshold)


def softshrink(x: Tensor, threshold: float = 0.5, name: Any = None) -> Tensor:
    """Moved towards zero by a number, and zero where x is small."""
    return F.softshrink(x, **{"lambda_": threshold})


def thresholded_relu(x: Tensor, threshold: float = 1.0, name: Any = None, value: float = 0.0) -> Tensor:
    """x above a threshold, a value below."""
    if value == 0.0:
        return F.thresholded_relu(x, threshold=threshold)
    return oprack.where(x > threshold, x, oprack.full_like(x, value))


def leaky_relu(x: Tensor, negative_slope: float = 0.01, name: Any = None) -> Tensor:
    """x above zero, a part of it below."""
    return F.leaky_relu(x, alpha=negative_slope)


def swish(x: Tensor, name: Any = None) -> Tensor:
    """x times its sigmoid."""
    return F.swish(x, beta=1.0)


def mish(x: Tensor, name: Any = None) -> Tensor:
    """x * tanh(softplus(x))."""
    return F.mish(x)


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0, name: Any = None) -> Tensor:
    """The smooth relu."""
    return F.softplus(x, beta=float(beta), threshold=float(threshold))


def selu(
    x: Tensor,
    scale: float = 1.0507009873554804934193349852946,
    alpha: float = 1.6732632423543772848170429916717,
    name: Any = None,
) -> Tensor:
    """The scaled elu."""
    return F.selu(x, scale=scale, alpha=alpha)


def maxout(x: Tensor, groups: int, axis: int = 1, name: Any = None) -> Tensor:
    """The largest channel of each group."""
    return F.maxout(x, groups=groups, axis=axis % x.ndim)


def rrelu(
    x: Tensor, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, training: bool = True, name: Any = None
) -> Tensor:
    """x above zero, a random part of it below."""
    found = F.rrelu(x, lower=lower, upper=upper, is_test=not training)
    return found[0] if isinstance(found, tuple) else found


def _activated(op: Any, x: Tensor, axis: int, dtype: Any) -> Tensor:
    return op(x if dtype is None else x.astype(str(dtype)), axis=axis)


def softmax(x: Tensor, axis: int = -1, dtype: Any = None, name: Any = None) -> Tensor:
    """Exponentials that add up to one along an axis."""
    return _activated(F.softmax, x, axis, dtype)


def log_softmax(x: Tensor, axis: int = -1, dtype: Any = None, name: Any = None) -> Tensor:
    """The logarithm of softmax."""
    return _activated(F.log_softmax, x, axis, dtype)


def gumbel_softmax(x: Tensor, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: Any = None) -> Tensor:
    """A random choice that gradients flow through."""
    return F.gumbel_softmax(x, temperature=temperature, hard=hard, axis=axis)


def sequence_mask(x: Tensor, maxlen: Any = None, dtype: Any = "int64", name: Any = None) -> Tensor:
    """1 before each length, 0 from there on."""
    host = np.asarray(x)
    longest = int(host.max()) if maxlen is None else int(plain(maxlen))
    return oprack.to_tensor((np.arange(longest) < host[..., None]).astype(str(dtype)))


def gather_tree(ids: Tensor, parents: Tensor) -> Tensor:
    """The sequences of a beam search, from its last step backwards."""
    return F.gather_tree(ids, parents)


def temporal_shift(
    x: Tensor, seg_num: int, shift_ratio: float = 0.25, name: Any = None, data_format: str = "NCHW"
) -> Tensor:
    """Some channels moved by a step in time."""
    return F.temporal_shift(x, seg_num=seg_num, shift_ratio=shift_ratio, data_format=data_format)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    training: bool = True, name: Any = None,
) -> Tensor:  # fmt: skip
    """Attention; dims are batch, length, heads, size."""
    q, k, v = (t.transpose([0, 2, 1, 3]) for t in (query, key, value))
    scores = F.matmul_v2(q * (1.0 / math.sqrt(q.shape[-1])), k, trans_y=True)
    if is_causal:
        mask = np.triu(np.full((q.shape[2], k.shape[2]), -np.inf, q.dtype), 1)
        scores = scores + oprack.to_tensor(mask)
    if attn_mask is not None:
        scores = (
            oprack.where(attn_mask, scores, oprack.full_like(scores, -math.inf))
            if attn_mask.dtype == "bool"
            else scores + attn_mask
        )
    weights = F.softmax(scores, axis=-1)
    if dropout_p and training:
        weights = NF.dropout(weights, dropout_p)
    return F.matmul_v2(weights, v).transpose([0, 2, 1, 3])


def conv2d_transpose(
    x: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1, output_size: Any = None, data_format: str = "NCHW", name: Any = None,
) -> Tensor:  # fmt: skip
    """The transposed convolution of pictures."""
    return NF.conv2d_transpose(
        x,
        weight,
        bias,
        stride,
        spatial(padding, data_format),
        output_padding,
        dilation,
        groups,
        output_size,
        data_format,
    )
