"""Interpolation and its gradient: one kernel each for all methods and both generations of ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array, ArrayModule, KernelContext
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS, HALF_FLOATS

from oprack_nn.kernels._layout import from_channel_first, to_channel_first
from oprack_nn.kernels.resize._resample import numbers, resample, resample_adjoint, taps
from oprack_nn.ops.resize._interp import channel_order, output_size

if TYPE_CHECKING:
    import numpy as np

PLACES = ("cpu", "cuda")
SCATTER: dict[str, Any] = {"place": PLACES, "deterministic": {"cpu"}}  # a GPU adds what meets in one place in any order
REALS = FLOATS | HALF_FLOATS
NUMBERS = REALS | {"uint8"}


def _steps(
    spatial: tuple[int, ...],
    out_size: Array | None,
    size_tensor: Sequence[Array],
    scale: Array | None,
    ctx: KernelContext,
    dtype: np.dtype[Any] | str,
) -> list[tuple[int, Array, Array | None]]:
    """[(axis, indices, weights)] per spatial dim that is resampled; [] when the size stays."""
    attrs = ctx.attrs
    sizes = [int(numbers(s)[0]) for s in size_tensor] or None
    out, factors = output_size(spatial, attrs, sizes, numbers(scale), numbers(out_size))
    if tuple(out) == tuple(spatial):
        return []  # Paddle copies X then, whatever the scale
    steps = []
    v2 = "_v2" in ctx.op_type
    for d, (size, n) in enumerate(zip(spatial, out, strict=True)):
        # without _v2 the ratio of the sizes counts
        factor = factors[d] if v2 and factors is not None else None
        how = (attrs["interp_method"], size, n, factor, attrs["align_corners"], attrs["align_mode"], v2)
        steps.append((d + 2, *taps(*how, dtype)))
    return steps


def _work_dtype(dtype: np.dtype[Any], method: str) -> np.dtype[Any] | str:
    """Weighted sums of narrow dtypes run in float32."""
    return dtype if method == "nearest" or dtype.name in FLOATS else "float32"


def interp(
    X: Array,
    OutSize: Array | None = None,
    SizeTensor: Sequence[Array] = (),
    Scale: Array | None = None,
    *,
    data_layout: str,
    interp_method: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    layout = channel_order(data_layout)
    x = to_channel_first(X, layout)
    work = _work_dtype(X.dtype, interp_method)
    steps = _steps(x.shape[2:], OutSize, SizeTensor, Scale, ctx, work)
    if not steps:
        return X.copy()
    y = x.astype(work, copy=False)
    for axis, index, weight in steps:
        y = resample(y, axis, index, weight, xp)
    return from_channel_first(y, layout, xp).astype(X.dtype, copy=False)


def interp_grad(
    X: ShapeOnly,
    OutSize: Array | None = None,
    SizeTensor: Sequence[Array] = (),
    Scale: Array | None = None,
    Out_grad: Array | None = None,
    *,
    data_layout: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    layout = channel_order(data_layout)
    spatial = to_channel_first(X, layout).shape[2:]
    dy = to_channel_first(Out_grad, layout)
    work = dy.dtype if dy.dtype.name in FLOATS else "float32"
    steps = _steps(spatial, OutSize, SizeTensor, Scale, ctx, work)
    if not steps:
        return Out_grad.copy()
    dx = dy.astype(work, copy=False)
    for axis, index, weight in steps:
        dx = resample_adjoint(dx, axis, spatial[axis - 2], index, weight, xp)
    return from_channel_first(dx, layout, xp).astype(dy.dtype, copy=False)
