"""Kernels of unfold and its gradient."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule, kernel
from oprack.op.families import conv_out
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

from oprack_nn.kernels.conv import Geometry, crop_spatial, pad_spatial, patches
from oprack_nn.ops.unfold import unfold_pads

PLACES = ("cpu", "cuda")
Windows = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]  # ksize, strides, paddings, dilations


def _geometry(
    spatial: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
) -> tuple[Geometry, tuple[int, ...]]:
    geo = Geometry(tuple(ksize), tuple(strides), tuple(unfold_pads(paddings)), tuple(dilations), 1)
    steps = zip(spatial, geo.ksize, geo.pads, geo.strides, geo.dilations, strict=True)
    return geo, tuple(conv_out(*step) for step in steps)


def unfolded(x: Array, windows: Windows, xp: ArrayModule) -> Array:
    """Every patch of an image as a column (im2col)."""
    geo, out = _geometry(x.shape[2:], *windows)
    n, c = x.shape[:2]
    columns = patches(pad_spatial(x, geo.pads, xp), geo, out, xp)
    return columns.copy().reshape(n, c * geo.ksize[0] * geo.ksize[1], out[0] * out[1])


def folded(columns: Array, sizes: Sequence[int], windows: Windows, xp: ArrayModule) -> Array:
    """The adjoint of unfolded: columns summed into an image of `sizes` (col2im)."""
    geo, out = _geometry(sizes, *windows)
    n, c = len(columns), columns.shape[1] // (geo.ksize[0] * geo.ksize[1])
    columns = columns.reshape(n, c, *geo.ksize, *out)
    x = xp.zeros((n, c, *(s + a + b for s, (a, b) in zip(sizes, geo.pads, strict=True))), columns.dtype)
    for tap in geo.taps():
        x[(..., *geo.tap(tap, out))] += columns[(slice(None),) * 2 + tap]
    return crop_spatial(x, geo.pads, sizes, xp).copy()


@kernel("unfold", place=PLACES, dtypes=FLOATS)
def unfold(
    X: Array, *, kernel_sizes: list[int], strides: list[int], paddings: list[int], dilations: list[int], xp: ArrayModule
) -> Array:
    return unfolded(X, (kernel_sizes, strides, paddings, dilations), xp)


@kernel("unfold_grad", place=PLACES, dtypes=FLOATS)
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
    return folded(Y_grad, X.shape[2:], (kernel_sizes, strides, paddings, dilations), xp)
