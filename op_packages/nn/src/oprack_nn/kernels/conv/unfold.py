"""Kernels of unfold and its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule, kernel
from oprack.op.windows import conv_out
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_nn.kernels.conv._maps import Geometry, crop_spatial, pad_spatial, patches
from oprack_nn.ops.conv.unfold import unfold_pads

_PLACES = ("cpu", "cuda")


def _geometry(
    x: Array | ShapeOnly,
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
) -> tuple[Geometry, tuple[int, int]]:
    geo = Geometry(tuple(ksize), tuple(strides), tuple(unfold_pads(paddings)), tuple(dilations), 1)
    steps = zip(x.shape[2:], geo.ksize, geo.pads, geo.strides, geo.dilations, strict=True)
    return geo, tuple(conv_out(*step) for step in steps)


@kernel("unfold", place=_PLACES, dtypes=FLOATS)
def unfold(
    X: Array, *, kernel_sizes: list[int], strides: list[int], paddings: list[int], dilations: list[int], xp: ArrayModule
) -> Array:
    geo, out = _geometry(X, kernel_sizes, strides, paddings, dilations)
    n, c = X.shape[:2]
    columns = patches(pad_spatial(X, geo.pads, xp), geo, out, xp)
    return columns.copy().reshape(n, c * geo.ksize[0] * geo.ksize[1], out[0] * out[1])


@kernel("unfold_grad", place=_PLACES, dtypes=FLOATS)
def unfold_grad(
    X: ShapeOnly,
    Y_grad: Array,
    *,
    kernel_sizes: list[int],
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    xp: ArrayModule,
) -> Array:
    geo, out = _geometry(X, kernel_sizes, strides, paddings, dilations)
    n, c, *spatial = X.shape
    columns = Y_grad.reshape(n, c, *geo.ksize, *out)
    x = xp.zeros((n, c, *(s + a + b for s, (a, b) in zip(spatial, geo.pads, strict=True))), Y_grad.dtype)
    for tap in geo.taps():
        x[(..., *geo.tap(tap, out))] += columns[(slice(None), slice(None), *tap)]
    return crop_spatial(x, geo.pads, spatial, xp).copy()
