"""Definitions of pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oprack import op
from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.families import Pads, resolve_pads
from oprack.op.sbp import leading
from oprack.types import AttrType

from oprack_nn.ops._layout import join_dims, layout_attr, split_dims
from oprack_nn.ops._windows import algorithm_attr, paddings_attr, positive


# Shape maths, rules and attributes that the pooling ops share.
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


def ksize_attr(support_tensor: bool = False) -> Attr:
    doc = "Size of the windows; with adaptive the size of the output."
    return Attr(REQUIRED, doc, type=AttrType.INTS, support_tensor=support_tensor)


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


# What unpool and unpool3d share: slots, rules, the output's size.
def unpool_dims(ctx: InferShapeContext) -> tuple[int, ...]:
    """Dims of Out; without output_size, as much as the windows that were pooled covered."""
    rank = len(ctx.attr("strides"))
    dims = ctx.require_rank("X", rank + 2)
    ctx.same_dims("X", "Indices")
    for name in ("ksize", "paddings"):
        given = ctx.attr(name)
        ctx.require(len(given) == rank, f"{name} is {list(given)}; expected {rank} numbers, one per spatial dim")
    size = ctx.attr("output_size")
    if any(not isinstance(s, int) for s in size):
        return (*dims[:2], *(-1,) * rank)  # a variable, whose value is not known yet
    if not any(size):
        steps = zip(dims[2:], ctx.attr("ksize"), ctx.attr("strides"), ctx.attr("paddings"), strict=True)
        size = [-1 if x < 0 else (x - 1) * s - 2 * p + k for x, k, s, p in steps]
    ctx.require(len(size) == rank, f"output_size is {list(size)}; expected {rank} numbers, one per spatial dim")
    ctx.require_sizes("the output's size", size)
    return (*dims[:2], *size)


class UnpoolOp(OpDef):
    """Slots and rules of unpool and unpool3d."""

    X = op.Input("Maxima [N, C, *spatial].")
    Indices = op.Input("Where each lies in the flattened spatial dims of Out, int32 or int64; shape of X.")
    Out = op.Output("[N, C, *output_size], zero where no maximum lies.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", unpool_dims(ctx))


class UnpoolGradOp(GradOpDef, reads="X Indices Out", shape_of="X Out", grads_of="X", dims={"Out@GRAD": unpool_dims}):
    """The rule of the gradient ops."""

    expected_kernel_type = dtype_of("Out@GRAD")


class MaxPool2DWithIndex(OpDef, type="max_pool2d_with_index"):
    r"""$$Out_{n,c,y,x} = \max_{i,j} X_{n,c,y s_h + i - p_t,x s_w + j - p_l}$$

    Max pooling that also says where: Mask is y W + x of the first maximum of each window.
    """

    X = op.Input("[N, C, H, W].")
    Out = op.Output("[N, C, H', W'].")
    Mask = op.Output("[N, C, H', W'], int32: position in the H x W plane.")
    ksize = ksize_attr()
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = paddings_attr(2)
    global_pooling = Attr(False, "One window over all of H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")
    infer_shape = infer_max_pool_shape
    infer_var_type = infer_max_pool_type
    sbp = leading(("X",), ("Out", "Mask"))


class MaxPool2DWithIndexGrad(
    GradOpDef,
    of=MaxPool2DWithIndex,
    reads="X Mask Out@GRAD",
    shape_of="X",
    dims={"Mask": max_pool_dims, "Out@GRAD": max_pool_dims},
):
    """Adds Out@GRAD to X@GRAD at Mask."""


class MaxPool3DWithIndex(OpDef, type="max_pool3d_with_index"):
    r"""$$Out_{n,c,z,y,x} = \max_{h,i,j} X_{n,c,z s_d + h - p_f,y s_h + i - p_t,x s_w + j - p_l}$$

    Max pooling that also says where: Mask is (z H + y) W + x of the first maximum of each window.
    """

    X = op.Input("[N, C, D, H, W].")
    Out = op.Output("[N, C, D', H', W'].")
    Mask = op.Output("[N, C, D', H', W'], int32: position in the D x H x W volume.")
    ksize = ksize_attr()
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = paddings_attr(3)
    global_pooling = Attr(False, "One window over all of D, H and W; ksize and paddings are ignored.")
    adaptive = Attr(False, "ksize is the output's size.")
    infer_shape = infer_max_pool_shape
    infer_var_type = infer_max_pool_type
    sbp = leading(("X",), ("Out", "Mask"))


class MaxPool3DWithIndexGrad(
    GradOpDef,
    of=MaxPool3DWithIndex,
    reads="X Mask Out@GRAD",
    shape_of="X",
    dims={"Mask": max_pool_dims, "Out@GRAD": max_pool_dims},
):
    """Adds Out@GRAD to X@GRAD at Mask."""


class Pool2D(OpDef, type="pool2d"):
    r"""$$Out_{n,c,y,x} = \max_{i,j} X_{n,c,y s_h + i - p_t,x s_w + j - p_l}$$ or the mean of the same window.

    As in Paddle, adaptive holds for avg; with max the output has the size ksize, but the windows are ksize wide and
    strides apart: max_pool2d_with_index is adaptive for max.
    """

    X = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Out = op.Output("[N, C, H', W'] in the layout of X.")
    ksize = ksize_attr(support_tensor=True)
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = paddings_attr(2)
    ceil_mode = Attr(False, "Let the last window reach over the end.")
    exclusive = Attr(True, "avg: divide by the elements of X in the window, not by its size.")
    data_format = layout_attr("NCHW")
    pooling_type = Attr("", "max or avg.").in_set(("max", "avg", ""))
    global_pooling = Attr(False, "One window over all of H and W; ksize and paddings are ignored.")
    adaptive = Attr(
        False, "ksize is the output's size; output i sees X from floor(i H / ksize) to ceil((i+1) H / ksize)."
    )
    padding_algorithm = algorithm_attr()
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.")
    is_test = Attr(False, "Inference.", extra=True)
    mkldnn_data_type = Attr("float32", "Paddle: dtype of the oneDNN kernel.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    use_quantizer = Attr(False, "Paddle: int8 oneDNN kernel.", extra=True)
    infer_shape = infer_pool_shape
    sbp = leading(("X",), ("Out",))


class Pool2DGrad(GradOpDef, of=Pool2D, reads="X Out", dims={"Out@GRAD": pool_dims}):
    """max: Out@GRAD goes to the first element of each window that equals Out; avg: it is spread over the window."""


class Pool2DDoubleGrad(
    GradOpDef,
    of=Pool2DGrad,
    type="pool2d_double_grad",
    grads_of="Out@GRAD",
    names={"X@GRAD": "grad_x", "Out@GRAD": "grad_out"},
):
    """Gradient of pool2d_grad by Out@GRAD: average pooling again. That of max pooling would need X, which it lacks."""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("grad_out@GRAD", pool_dims(ctx, "grad_x@GRAD"))


class Pool3D(OpDef, type="pool3d"):
    r"""$$Out_{n,c,z,y,x} = \max_{h,i,j} X_{n,c,z s_d + h - p_f,y s_h + i - p_t,x s_w + j - p_l}$$ or the mean of the
    same window.

    pool2d with a third spatial dim, D.
    """

    X = op.Input("[N, C, D, H, W], or [N, D, H, W, C] with data_format NDHWC.")
    Out = op.Output("[N, C, D', H', W'] in the layout of X.")
    ksize = ksize_attr()
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = paddings_attr(3)
    ceil_mode = Attr(False, "Let the last window reach over the end.")
    exclusive = Attr(True, "avg: divide by the elements of X in the window, not by its size.")
    data_format = layout_attr("NCDHW")
    pooling_type = Attr("", "max or avg.").in_set(("max", "avg", ""))
    global_pooling = Attr(False, "One window over all of D, H and W; ksize and paddings are ignored.")
    adaptive = Attr(
        False, "ksize is the output's size; output i sees X from floor(i H / ksize) to ceil((i+1) H / ksize)."
    )
    padding_algorithm = algorithm_attr()
    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.")
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    infer_shape = infer_pool_shape
    sbp = leading(("X",), ("Out",))


class Pool3DGrad(GradOpDef, of=Pool3D, reads="X Out", dims={"Out@GRAD": pool_dims}):
    """As pool2d_grad, with a third spatial dim."""


def levels(spatial: Sequence[int], pyramid_height: int, pooling_type: str) -> list[dict[str, Any]]:
    """Attributes of pool2d for each level: level p has 2^p bins along each dim."""
    found = []
    for p in range(pyramid_height):
        bins = 2**p
        ksize = [-(-s // bins) for s in spatial]
        pads = [(k * bins - s + 1) // 2 for k, s in zip(ksize, spatial, strict=True)]
        found.append(
            {
                "pooling_type": pooling_type,
                "ksize": ksize,
                "strides": ksize,
                "paddings": pads,
                "exclusive": True,
                "adaptive": False,
                "global_pooling": False,
            }
        )
    return found


def _output_dims(ctx: InferShapeContext) -> tuple[int, int]:
    n, c, h, w = ctx.require_rank("X", 4)
    ctx.require(h != 0 and w != 0, f"X has shape {[n, c, h, w]}; expected images with pixels")
    bins = (4 ** ctx.attr("pyramid_height") - 1) // 3
    return n, -1 if c < 0 else c * bins


class Spp(OpDef, type="spp"):
    r"""$$Out = (pool_1(X), pool_2(X), pool_4(X), \dots)$$ where pool_b(X) are the C b^2 numbers of b x b windows that
    cover the image

    Spatial pyramid pooling (He et al., 2014): a row of fixed length for an image of any size.
    """

    X = Input("[N, C, H, W].")
    Out = Output("[N, C (4^pyramid_height - 1) / 3].")
    pyramid_height = Attr(REQUIRED, "Levels; level p has 2^p x 2^p windows.", type=AttrType.INT).between(1, 12)
    pooling_type = Attr(REQUIRED, "max or avg.", type=AttrType.STRING).in_set(("max", "avg"))
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", _output_dims(ctx))


class SppGrad(GradOpDef, of=Spp, reads="X Out", dims={"Out@GRAD": _output_dims}):
    """X@GRAD sums the gradients of the levels, each as that of pool2d."""


class Unpool(UnpoolOp, type="unpool"):
    r"""$$Out_{n,c,Indices_{n,c,y,x}} = X_{n,c,y,x}$$, 0 elsewhere

    Maxima back where max_pool2d_with_index found them.
    """

    ksize = Attr(REQUIRED, "Size of the windows that were pooled.", type=AttrType.INTS)
    unpooling_type = Attr(REQUIRED, "Only max.", type=AttrType.STRING).in_set(("max",))
    strides = positive([1, 1], "Step of the windows along H and W.")
    paddings = Attr([0, 0], "Padding of H and W when they were pooled.")
    output_size = Attr([0, 0], "[H, W] of Out; zeros: as the windows give it.", support_tensor=True)
    data_format = Attr("NCHW", "Only NCHW.").in_set(("NCHW",))
    sbp = leading(("X", "Indices"), ("Out",))


class UnpoolGrad(UnpoolGradOp, of=Unpool):
    r"""$$X@GRAD_{n,c,y,x} = Out@GRAD_{n,c,Indices_{n,c,y,x}}$$"""


class Unpool3D(UnpoolOp, type="unpool3d"):
    r"""$$Out_{n,c,Indices_{n,c,z,y,x}} = X_{n,c,z,y,x}$$, 0 elsewhere

    Maxima back where max_pool3d_with_index found them.
    """

    ksize = Attr(REQUIRED, "Size of the windows that were pooled.", type=AttrType.INTS)
    strides = positive([1, 1, 1], "Step of the windows along D, H and W.")
    paddings = Attr([0, 0, 0], "Padding of D, H and W when they were pooled.")
    output_size = Attr([0, 0, 0], "[D, H, W] of Out; zeros: as the windows give it.")
    data_format = Attr("NCDHW", "Only NCDHW.").in_set(("NCDHW",))


class Unpool3DGrad(UnpoolGradOp, of=Unpool3D):
    r"""$$X@GRAD_{n,c,z,y,x} = Out@GRAD_{n,c,Indices_{n,c,z,y,x}}$$"""
