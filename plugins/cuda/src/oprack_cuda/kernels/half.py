"""float16 and bfloat16 for ops whose sources are for float32 and wider: products as they are, since cuBLAS sums them in
float32; norms, pooling and losses in float32, with results rounded.
"""

from __future__ import annotations

import inspect

from oprack.types import HALF_FLOATS
from oprack_nn.kernels import batch_norm as _batch_norm
from oprack_nn.kernels import conv as _conv
from oprack_nn.kernels import conv_transpose as _transpose
from oprack_nn.kernels import group_norm as _group_norm
from oprack_nn.kernels import instance_norm as _instance_norm
from oprack_nn.kernels import pool as _pool
from oprack_nn.kernels import prelu as _prelu
from oprack_nn.kernels import softmax_with_cross_entropy as _cross_entropy

from oprack_cuda.wrap import declare, like, map_arrays, specs_of

# outputs that stay float32: statistics, and gradients of float32 parameters
_WIDE = {"Scale_grad", "Bias_grad"}


def _ops(function):
    return [s.op_type for s in specs_of(function, "cuda")]


def _same_bits(function):
    return all(s.deterministic for s in specs_of(function, "cuda"))


def _as_it_is(function):
    takes_ctx = "ctx" in inspect.signature(function).parameters

    def call(*arguments, ctx, **named):
        return function(*arguments, **named, **({"ctx": ctx} if takes_ctx else {}))

    return declare(like(function, call, __name__), _ops(function), HALF_FLOATS, _same_bits(function))


def _in_float32(function, outputs=1):
    """outputs: how many of a tuple's first are rounded; of a dict all gradients but those of scales and biases."""
    takes_ctx = "ctx" in inspect.signature(function).parameters

    def call(*arguments, ctx, xp=None, **named):
        half = next(a.dtype for a in arguments if hasattr(a, "dtype") and a.dtype.itemsize == 2)
        named |= {"ctx": ctx} if takes_ctx else {}
        named |= {"xp": xp} if xp is not None else {}
        wide = (map_arrays(a, lambda x: x.astype("float32") if x.dtype == half else x) for a in arguments)
        result = function(*wide, **named)
        if isinstance(result, dict):
            return {k: v if k in _WIDE or v is None else v.astype(half) for k, v in result.items()}
        if isinstance(result, tuple):
            return (*(r.astype(half) for r in result[:outputs]), *result[outputs:])
        return result.astype(half)

    return declare(like(function, call, __name__), _ops(function), HALF_FLOATS, _same_bits(function))


conv, conv_grad = _as_it_is(_conv.conv), _as_it_is(_conv.conv_grad)
conv2d_transpose, conv3d_transpose = _as_it_is(_transpose.conv2d_transpose), _as_it_is(_transpose.conv3d_transpose)
conv_transpose_grad = _as_it_is(_transpose.conv_transpose_grad)
batch_norm, batch_norm_grad = _in_float32(_batch_norm.batch_norm), _in_float32(_batch_norm.batch_norm_grad)
group_norm, group_norm_grad = _in_float32(_group_norm.group_norm), _in_float32(_group_norm.group_norm_grad)
instance_norm = _in_float32(_instance_norm.instance_norm)
instance_norm_grad = _in_float32(_instance_norm.instance_norm_grad)
prelu, prelu_grad = _in_float32(_prelu.prelu), _in_float32(_prelu.prelu_grad)
softmax_with_cross_entropy = _in_float32(_cross_entropy.softmax_with_cross_entropy, outputs=2)
softmax_with_cross_entropy_grad = _in_float32(_cross_entropy.softmax_with_cross_entropy_grad)
pool, pool_grad = _in_float32(_pool.pool), _in_float32(_pool.pool_grad)
