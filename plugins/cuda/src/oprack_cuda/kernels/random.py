"""Random numbers made on the device. The seed is the next number of the op's own generator, so a run can be repeated;
the numbers are others than those of the CPU.
"""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, decline
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS, HALF_FLOATS
from oprack_random.kernels import given_shape

from oprack_cuda.kernels._launch import F64, I64, U64, cuda_kernel, dense, launch

REALS = FLOATS | HALF_FLOATS


def _seed(ctx: KernelContext, number: int) -> np.uint64:
    return U64(ctx.generator(number).integers(1 << 63))


@cuda_kernel("dropout", REALS, may_decline=True)
def dropout(
    X: Array,
    Seed: Array | None = None,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    if is_test or dropout_prob in (0.0, 1.0):
        return decline("nothing is random")
    number = int(Seed.reshape(-1)[0]) if Seed is not None else seed if fix_seed else 0
    x = dense(xp, X)
    out, mask = xp.empty(x.shape, x.dtype), xp.empty(x.shape, "uint8")
    numbers = I64(x.size), _seed(ctx, number), F64(dropout_prob), F64(_scale(dropout_prob, dropout_implementation))
    launch(xp, "random.cu", "dropout", x.dtype, -(-x.size // 4), x, out, mask, *numbers)
    return out, mask


@cuda_kernel("dropout_grad", REALS, may_decline=True)
def dropout_grad(
    Out_grad: Array,
    Mask: Array | None = None,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
    xp: ArrayModule,
) -> Array:
    if is_test or Mask is None:
        return decline("there is no mask")
    grad = dense(xp, Out_grad)
    out, numbers = xp.empty(grad.shape, grad.dtype), (I64(grad.size), F64(_scale(dropout_prob, dropout_implementation)))
    launch(xp, "random.cu", "dropout_grad", grad.dtype, grad.size, grad, dense(xp, Mask), out, *numbers)
    return out


def _scale(p: float, implementation: str) -> float:
    """Factor of the kept elements."""
    return 1.0 / (1.0 - p) if implementation == "upscale_in_train" and p < 1.0 else 1.0


@cuda_kernel("uniform_random", FLOATS | {"bfloat16"}, may_decline=True)
def uniform_random(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    dtype: int,
    min: float,
    max: float,
    seed: int,
    diag_num: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    if diag_num:
        return decline("diag_num asks for a diagonal")
    if min > max:
        raise InvalidArgumentError(f"op uniform_random: min is {min} and max {max}; expected min <= max")
    out = xp.empty(given_shape("uniform_random", ShapeTensor, ShapeTensorList, shape), numpy_dtype(dtype))
    numbers = I64(out.size), _seed(ctx, seed), F64(min), F64(max)
    launch(xp, "random.cu", "uniform", out.dtype, out.size, out, *numbers)
    return out


@cuda_kernel("gaussian_random", FLOATS)
def gaussian_random(
    ShapeTensor: Array | None = None,
    ShapeTensorList: list[Array] | None = None,
    *,
    shape: list[int],
    mean: float,
    std: float,
    seed: int,
    dtype: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    out = xp.empty(given_shape("gaussian_random", ShapeTensor, ShapeTensorList, shape), numpy_dtype(dtype))
    launch(xp, "random.cu", "gaussian", out.dtype, out.size, out, I64(out.size), _seed(ctx, seed), F64(mean), F64(std))
    return out
