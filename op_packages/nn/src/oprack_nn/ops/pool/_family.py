"""Shape maths, rules and attributes that the pooling ops share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext
from oprack.op.windows import Pads, resolve_pads
from oprack.types import AttrType

from oprack_nn.ops._layout import join_dims, split_dims


@dataclass(frozen=True)
class PoolGeometry:
    """Windows of a pooling op: one entry per spatial dim."""

    spatial: tuple[int, ...]
    ksize: tuple[int, ...]
    strides: tuple[int, ...]
    pads: Pads
    out: tuple[int, ...]
    adaptive: bool

    @classmethod
    def of(cls, spatial: Sequence[int], attrs: Mapping[str, Any]) -> PoolGeometry:
        """From the spatial dims of X and the op's attributes; unknown dims stay -1."""
        rank, strides, adaptive = len(spatial), tuple(attrs["strides"]), attrs["adaptive"]
        # at build time the sizes may be variables, whose values are not known yet
        ksize = tuple(k if isinstance(k, int) else -1 for k in attrs["ksize"])
        ksize = ksize if len(ksize) == rank else (-1,) * rank
        if attrs["global_pooling"]:
            ksize = tuple(spatial)
        if adaptive:
            return cls(tuple(spatial), ksize, strides, [(0, 0)] * rank, ksize, True)
        if attrs["global_pooling"]:
            return cls(tuple(spatial), ksize, strides, [(0, 0)] * rank, (1,) * rank, False)
        pads = resolve_pads(attrs.get("padding_algorithm", "EXPLICIT"), attrs["paddings"], spatial, ksize, strides)
        extra = [s - 1 if attrs.get("ceil_mode", False) else 0 for s in strides]
        out = tuple(
            -1 if x < 0 or k < 0 else (x - k + a + b + e) // s + 1
            for x, k, (a, b), e, s in zip(spatial, ksize, pads, extra, strides, strict=True)
        )
        return cls(tuple(spatial), ksize, strides, pads, out, False)


def pool_geometry(ctx: InferShapeContext, spatial: Sequence[int]) -> PoolGeometry:
    """Geometry of the op of an InferShapeContext; fails with the numbers when a window does not fit."""
    ksize = ctx.attr("ksize")
    ctx.require(
        len(ksize) == len(spatial) or any(not isinstance(k, int) for k in ksize),
        f"ksize is {list(ksize)}; expected {len(spatial)} numbers, one per spatial dim",
    )
    # Fluid writes -1 for a global window
    sizes = [] if ctx.attr("global_pooling") else [k for k in ksize if isinstance(k, int)]
    ctx.require(all(k > 0 for k in sizes), f"ksize is {list(ksize)}; expected numbers greater than 0")
    geo = PoolGeometry.of(spatial, ctx.attrs)
    ctx.require(
        all(o == -1 or o > 0 for o in geo.out),
        f"windows {list(geo.ksize)} with strides {list(geo.strides)} give an output of {list(geo.out)} from X "
        f"{list(geo.spatial)} padded by {geo.pads}; raise paddings, shrink ksize or feed a larger X",
    )
    return geo


def ksize_attr(**flags: bool) -> Attr:
    doc = "Size of the windows; with adaptive the size of the output."
    return Attr(REQUIRED, doc, type=AttrType.INTS, **flags)


def max_pool_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of Out and Mask."""
    dims = ctx.require_rank("X", len(ctx.attr("strides")) + 2)
    return (*dims[:2], *pool_geometry(ctx, dims[2:]).out)


def infer_max_pool_shape(ctx: InferShapeContext) -> None:
    """The shape rule of max_pool2d_with_index and max_pool3d_with_index."""
    dims = max_pool_dims(ctx)
    ctx.set_dim("Out", dims)
    ctx.set_dim("Mask", dims)


def infer_max_pool_type(ctx: InferVarTypeContext) -> None:
    """Out of the dtype of X, Mask of int32."""
    ctx.set_dtype("Out", ctx.dtype("X"))
    ctx.set_dtype("Mask", "int32")


def pool_dims(ctx: InferShapeContext, slot: str = "X") -> tuple[int, ...]:
    """Dims of Out when the images are in `slot`."""
    dims = ctx.require_rank(slot, len(ctx.attr("strides")) + 2)
    n, c, spatial = split_dims(dims, ctx.attr("data_format"))
    return join_dims(n, c, pool_geometry(ctx, spatial).out, ctx.attr("data_format"))


def infer_pool_shape(ctx: InferShapeContext) -> None:
    """The shape rule of pool2d and pool3d."""
    ctx.set_dim("Out", pool_dims(ctx))
    ctx.share_lod("X", "Out")
