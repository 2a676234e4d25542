"""Kernels of cuda_bias_act: in one launch, or by the packs' sources at any place."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, HALF_FLOATS

from oprack_cuda.kernels._launch import F64, I32, I64, cuda_kernel, dense, launch
from oprack_cuda.ops.bias_act import ACTIVATIONS

REALS = FLOATS | HALF_FLOATS
_CODES = {name: I32(i) for i, name in enumerate(ACTIVATIONS)}


@kernel("cuda_bias_act", place=("cpu", "cuda"), dtypes=REALS)
def reference_bias_act(
    X: Array, Bias: Array, *, axis: int, act: str, numbers: list[float], ctx: KernelContext
) -> Array:
    total = X + Bias.reshape(-1, *(1,) * (X.ndim - axis % X.ndim - 1))
    return ctx.run_op(act, {"X": total}, dict(zip(ACTIVATIONS[act], numbers, strict=True)))


@cuda_kernel("cuda_bias_act", REALS)
def bias_act(X: Array, Bias: Array, *, axis: int, act: str, numbers: list[float], xp: ArrayModule) -> Array:
    x, bias = dense(xp, X), dense(xp, Bias, X.dtype)
    y, inner = xp.empty(x.shape, x.dtype), math.prod(x.shape[axis % x.ndim + 1 :])
    a, b, c = (F64(v) for v in (*numbers, 0, 0, 0)[:3])
    sizes = I64(y.size), I64(inner), I64(bias.size)
    launch(xp, "pointwise.cu", "bias_act", x.dtype, y.size, x, bias, y, *sizes, _CODES[act], a, b, c)
    return y
