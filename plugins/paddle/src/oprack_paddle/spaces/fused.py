"""paddle.incubate.nn.functional: functions that Paddle fuses for GPUs, as what they compute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import oprack
import oprack.nn.functional as NF
from oprack import functional as F

Tensor = Any


def _dropped(x: Tensor, p: float, training: bool, mode: str) -> Tensor:
    return NF.dropout(x, p, training=training, mode=mode)


def _normed(x: Tensor, scale: Any, bias: Any, epsilon: float) -> Tensor:
    return NF.layer_norm(x, [x.shape[-1]], scale, bias, epsilon)


def fused_dropout_add(
    x: Tensor, y: Tensor, p: float = 0.5, training: bool = True, mode: str = "upscale_in_train", name: Any = None
) -> Tensor:
    """dropout(x) + y."""
    return _dropped(x, p, training, mode) + y


def fused_matmul_bias(
    x: Tensor, y: Tensor, bias: Any = None, transpose_x: bool = False, transpose_y: bool = False, name: Any = None
) -> Tensor:
    """A product of matrices and a bias."""
    found = F.matmul_v2(x, y, trans_x=transpose_x, trans_y=transpose_y)
    return found if bias is None else found + bias


def fused_linear(
    x: Tensor, weight: Tensor, bias: Any = None, transpose_weight: bool = False, name: Any = None
) -> Tensor:
    """A product with a weight, and a bias."""
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


def fused_linear_activation(
    x: Tensor, y: Tensor, bias: Tensor, trans_x: bool = False, trans_y: bool = False, activation: Any = None
) -> Tensor:
    """A product of matrices, a bias and an activation."""
    found = fused_matmul_bias(x, y, bias, trans_x, trans_y)
    return found if activation in (None, "none") else getattr(NF, activation)(found)


def fused_bias_dropout_residual_layer_norm(
    x: Tensor, residual: Tensor, bias: Any = None, ln_scale: Any = None, ln_bias: Any = None, dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-05, training: bool = True, mode: str = "upscale_in_train", name: Any = None,
) -> Tensor:  # fmt: skip
    """layer_norm(residual + dropout(x + bias))."""
    x = x if bias is None else x + bias
    return _normed(residual + _dropped(x, dropout_rate, training, mode), ln_scale, ln_bias, ln_epsilon)


def fused_feedforward(
    x: Tensor, linear1_weight: Tensor, linear2_weight: Tensor, linear1_bias: Any = None, linear2_bias: Any = None,
    ln1_scale: Any = None,
    ln1_bias: Any = None, ln2_scale: Any = None, ln2_bias: Any = None, dropout1_rate: float = 0.5,
    dropout2_rate: float = 0.5,
    activation: str = "relu", ln1_epsilon: float = 1e-05, ln2_epsilon: float = 1e-05, pre_layer_norm: bool = False,
    training: bool = True,
    mode: str = "upscale_in_train", ring_id: int = -1, add_residual: bool = True, name: Any = None,
) -> Tensor:  # fmt: skip
    """The feed-forward part of a transformer's layer."""
    inner = _normed(x, ln1_scale, ln1_bias, ln1_epsilon) if pre_layer_norm else x
    inner = getattr(NF, activation)(fused_linear(inner, linear1_weight, linear1_bias))
    found = fused_linear(_dropped(inner, dropout1_rate, training, mode), linear2_weight, linear2_bias)
    found = _dropped(found, dropout2_rate, training, mode)
    found = x + found if add_residual else found
    return found if pre_layer_norm else _normed(found, ln2_scale, ln2_bias, ln2_epsilon)


def fused_multi_head_attention(
    x: Tensor, qkv_weight: Tensor, linear_weight: Tensor, pre_layer_norm: bool = False, pre_ln_scale: Any = None,
    pre_ln_bias: Any = None,
    ln_scale: Any = None, ln_bias: Any = None, pre_ln_epsilon: float = 1e-05, qkv_bias: Any = None,
    linear_bias: Any = None,
    cache_kv: Any = None, attn_mask: Any = None, dropout_rate: float = 0.5, attn_dropout_rate: float = 0.5,
    ln_epsilon: float = 1e-05,
    training: bool = True, mode: str = "upscale_in_train", ring_id: int = -1, add_residual: bool = True,
    num_heads: int = -1,
    transpose_qkv_wb: bool = False, name: Any = None,
) -> Tensor:  # fmt: skip
    """The attention of a transformer's layer."""
    if cache_kv is not None:
        raise NotImplementedError("fused_multi_head_attention: cache_kv is given; expected None, for a whole sequence")
    inner = _normed(x, pre_ln_scale, pre_ln_bias, pre_ln_epsilon) if pre_layer_norm else x
    batch, length, width = inner.shape
    if transpose_qkv_wb:
        heads, size = num_heads, width // num_heads
        qkv = fused_matmul_bias(inner, qkv_weight, qkv_bias)
    else:
        _, heads, size, _ = qkv_weight.shape
        bias = None if qkv_bias is None else qkv_bias.reshape([-1])
        qkv = fused_matmul_bias(inner, qkv_weight.reshape([-1, width]), bias, transpose_y=True)
    q, k, v = oprack.unstack(qkv.reshape([batch, length, 3, heads, size]).transpose([2, 0, 3, 1, 4]), 0)
    scores = F.matmul_v2(q * (1 / math.sqrt(size)), k, trans_y=True)
    scores = scores if attn_mask is None else scores + attn_mask
    weights = _dropped(F.softmax(scores, axis=-1), attn_dropout_rate, training, mode)
    joined = F.matmul_v2(weights, v).transpose([0, 2, 1, 3]).reshape([batch, length, heads * size])
    found = _dropped(fused_linear(joined, linear_weight, linear_bias), dropout_rate, training, mode)
    found = x + found if add_residual else found
    return found if pre_layer_norm else _normed(found, ln_scale, ln_bias, ln_epsilon)


def fused_ec_moe(
    x: Tensor,
    gate: Tensor,
    bmm0_weight: Tensor,
    bmm0_bias: Tensor,
    bmm1_weight: Tensor,
    bmm1_bias: Tensor,
    act_type: str,
) -> Tensor:
    """Experts for each token, weighted by the softmax of their gates."""
    gates = F.softmax(gate, axis=-1)
    hidden = F.matmul_v2(x.unsqueeze(1), bmm0_weight.unsqueeze(0)) + bmm0_bias.unsqueeze(0)
    out = F.matmul_v2(getattr(NF, act_type)(hidden), bmm1_weight.unsqueeze(0)) + bmm1_bias.unsqueeze(0)
    return (out * gates.transpose([0, 2, 1]).unsqueeze(-1)).sum(1)


def _added(x: Tensor, bias: Any, residual: Any, alpha: float) -> Tensor:
    x = x if bias is None else x + bias
    return x if residual is None else x + residual * alpha


def fused_layer_norm(
    x: Tensor, norm_weight: Any, norm_bias: Any, epsilon: float, residual_alpha: float = 1.0,
    begin_norm_axis: int = 1, bias: Any = None,
    residual: Any = None, quant_scale: float = -1, quant_round_type: float = 0, quant_max_bound: float = 0,
    quant_min_bound: float = 0,
) -> Any:  # fmt: skip
    """layer_norm(x + bias + residual_alpha * residual), and the sum where there is a residual."""
    if quant_scale > 0:
        raise NotImplementedError("fused_layer_norm: quant_scale is positive; expected -1, without quantization")
    added = _added(x, bias, residual, residual_alpha)
    out = NF.layer_norm(added, list(added.shape[begin_norm_axis:]), norm_weight, norm_bias, epsilon)
    return out if residual is None else (out, added)


def fused_rms_norm(
    x: Tensor, norm_weight: Tensor, norm_bias: Any, epsilon: float, begin_norm_axis: int, bias: Any = None,
    residual: Any = None,
    quant_scale: float = -1, quant_round_type: float = 0, quant_max_bound: float = 0, quant_min_bound: float = 0,
) -> Any:  # fmt: skip
    """x over the root of its mean square, times a weight."""
    if quant_scale > 0:
        raise NotImplementedError("fused_rms_norm: quant_scale is positive; expected -1, without quantization")
    added = _added(x, bias, residual, 1.0)
    axes = list(range(begin_norm_axis % x.ndim, x.ndim))
    out = added * F.rsqrt((added * added).mean(axes, keepdim=True) + epsilon) * norm_weight
    out = out if norm_bias is None else out + norm_bias
    return out if residual is None else (out, added)


def fused_rotary_position_embedding(
    q: Tensor, k: Any = None, v: Any = None, sin: Any = None, cos: Any = None, position_ids: Any = None,
    use_neox_rotary_style: bool = True,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Queries, keys and values, turned by angles that grow with their places."""
    length, size = q.shape[1], q.shape[-1]
    if sin is None:
        angle = np.arange(length)[:, None] / (10000.0 ** (np.arange(0, size, 2) / size))
        both = np.repeat(angle, 2, -1) if use_neox_rotary_style else np.concatenate([angle, angle], -1)
        sin, cos = (oprack.to_tensor(f(both).astype(q.dtype)) for f in (np.sin, np.cos))
    sin, cos = (t.reshape([-1, size]) for t in (sin, cos))
    if position_ids is not None:
        flat = position_ids.reshape([-1])
        sin, cos = (F.gather(t, flat).reshape([*position_ids.shape, 1, size]) for t in (sin, cos))
    else:
        sin, cos = (t[:length].reshape([1, length, 1, size]) for t in (sin, cos))

    def turned(x: Any) -> Any:
        if x is None:
            return None
        if use_neox_rotary_style:
            pairs = x.reshape([*x.shape[:-1], size // 2, 2])
            other = oprack.stack([-pairs[..., 1], pairs[..., 0]], axis=-1).reshape(list(x.shape))
        else:
            other = oprack.concat([-x[..., size // 2 :], x[..., : size // 2]], axis=-1)
        return x * cos + other * sin

    return turned(q), turned(k), turned(v)


def variable_length_memory_efficient_attention(
    query: Tensor, key: Tensor, value: Tensor, seq_lens: Tensor, kv_seq_lens: Tensor, mask: Any = None,
    scale: Any = None,
    causal: bool = False, pre_cache_length: int = 0,
) -> Tensor:  # fmt: skip
    """Attention of sequences of different lengths; dims are batch, heads, length, size."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = F.matmul_v2(query * scale, key, trans_y=True)
    scores = scores if mask is None else scores + mask
    columns = np.arange(key.shape[2])
    allowed = columns < np.asarray(kv_seq_lens).reshape(-1, 1, 1, 1) + pre_cache_length
    if causal:
        allowed = allowed & (columns[None] <= np.arange(query.shape[2])[:, None] + pre_cache_length)
    bias = np.where(np.broadcast_to(allowed, (scores.shape[0], 1, *scores.shape[2:])), 0, -1e30).astype(query.dtype)
    found = F.matmul_v2(F.softmax(scores + oprack.to_tensor(bias), axis=-1), value)
    rows = (np.arange(query.shape[2]) < np.asarray(seq_lens).reshape(-1, 1)).astype(query.dtype)
    return found * oprack.to_tensor(rows[:, None, :, None].copy())
