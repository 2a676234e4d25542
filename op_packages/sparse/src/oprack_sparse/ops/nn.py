"""Ops of networks."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


# What convolution and pooling share.
def _types_of_windows(ctx: InferVarTypeContext) -> None:
    ctx.set_kind("out", VarType.SPARSE_COO)
    ctx.set_dtype("out", ctx.dtype("x"))
    for slot in ("rulebook", "counter"):
        ctx.set_kind(slot, VarType.LOD_TENSOR)
        ctx.set_dtype(slot, "int32")


# What both batch norms share.
class Norm(OpDef):
    """Normalises the values over all listed points."""

    x = Input("Sparse tensor in COO [N, ..., C], of which the channels C alone are dense.")
    mean = Input("[C], running mean.")
    variance = Input("[C], running variance.")
    scale = Input("[C].")
    bias = Input("[C].")
    out = Output("Sparse tensor with x's pattern.")
    mean_out = Output("[C], new running mean; usually the variable of mean.", stop_gradient=True)
    variance_out = Output("[C], new running variance; usually the variable of variance.", stop_gradient=True)
    saved_mean = Output("[C], the mean of the listed points.", stop_gradient=True)
    saved_variance = Output("[C], 1 / sqrt(variance + epsilon) of the listed points.", stop_gradient=True)
    reserve_space = Output("Paddle: scratch of cuDNN; empty here.", stop_gradient=True)
    is_test = Attr(REQUIRED, "Normalise by mean and variance and leave them as they are.", type=AttrType.BOOLEAN)
    momentum = Attr(REQUIRED, "Weight of the old running statistics.", type=AttrType.FLOAT)
    epsilon = Attr(REQUIRED, "Added to the variance.", type=AttrType.FLOAT)
    data_layout = Attr(REQUIRED, "Where the channels are; those of a sparse tensor are last.", type=AttrType.STRING)
    use_global_stats = Attr(REQUIRED, "Normalise by mean and variance in training, too.", type=AttrType.BOOLEAN)
    trainable_statistics = Attr(REQUIRED, "Use the points' statistics even with is_test.", type=AttrType.BOOLEAN)
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("x")
        if not dims and not ctx.is_runtime:
            return
        for slot in ("mean", "variance", "scale", "bias"):
            ctx.require_dims(slot, dims[-1:], why=f"the channels of x {list(dims)}")
        ctx.set_dim("out", dims)
        for slot in ("mean_out", "variance_out", "saved_mean", "saved_variance"):
            ctx.set_dim(slot, dims[-1:])
        ctx.set_dim("reserve_space", (0,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", ctx.kind("x"))
        ctx.set_dtype("out", ctx.dtype("x"))
        of = {"mean_out": "mean", "variance_out": "variance", "saved_mean": "x", "saved_variance": "x"}
        for slot, source in (of | {"reserve_space": "x"}).items():
            ctx.set_kind(slot, VarType.LOD_TENSOR)
            ctx.set_dtype(slot, ctx.dtype(source))


class NormGrad(
    GradOpDef,
    reads="x scale bias mean_out variance_out saved_mean saved_variance out@GRAD",
    shape_of="bias",
    grads_of="x scale bias",
):
    """Gradient of a Norm."""

    expected_kernel_type = dtype_of("x")


# Shape rules of windows that move over points.
def window_dims(
    ctx: InferShapeContext,
    dims: Sequence[int],
    sizes: Sequence[int | None],
    paddings: Sequence[int],
    strides: Sequence[int],
) -> list[int]:
    """Sizes of the space over which windows have their places: $$(d + 2p - dilation (k - 1) - 1) / stride + 1$$.

    sizes: of a window; None for one that only a run knows.
    """
    dilations = ctx.attr("dilations")
    given = (("sizes", sizes), ("paddings", paddings), ("strides", strides), ("dilations", dilations))
    for name, values in given:
        least = min((v for v in values if v is not None), default=1)
        right = len(values) == len(dims) and least >= (0 if name == "paddings" else 1)
        ctx.require(right, f"{name} is {list(values)} for x with the space {list(dims)}; expected one for each dim")
    found = [
        -1 if d < 0 or k is None else (d + 2 * p - e * (k - 1) - 1) // s + 1
        for d, k, p, s, e in zip(dims, sizes, paddings, strides, dilations, strict=True)
    ]
    ctx.require_sizes("the space of the result", found)
    return found


# sparse_batch_norm and its gradient.
class SparseBatchNorm(Norm, type="sparse_batch_norm"):
    r"""$$out = scale \frac{x - \mu}{\sqrt{\sigma^2 + epsilon}} + bias$$ for each channel, over the listed points."""

    inplace = {"mean": "mean_out", "variance": "variance_out"}


class SparseBatchNormGrad(NormGrad, of=SparseBatchNorm):
    r"""With xhat the normalised x: bias@GRAD = sum out@GRAD, scale@GRAD = sum xhat out@GRAD, and

    $$x@GRAD = \frac{scale}{\sigma} (out@GRAD - mean(out@GRAD) - xhat \cdot mean(xhat\, out@GRAD))$$, without the means
    where the forward op used the running statistics.
    """


# sparse_conv3d and its gradient.
class SparseConv3d(OpDef, type="sparse_conv3d"):
    r"""$$out_o = \sum_k x_{o \cdot stride - padding + k \cdot dilation}\, kernel_k$$ over the points that x lists.

    Points are listed where a window meets a point of x; with `subm`, a submanifold convolution, where x has one, with
    windows around it and steps of 1. Images of two dims work alike.
    """

    x = Input("Sparse tensor in COO [N, D, H, W, C], of which the channels C are dense.")
    kernel = Input("[kD, kH, kW, C, channels of out].")
    out = Output("Sparse tensor in COO [N, D, H, W, channels of out].")
    rulebook = Output("Int32 [3, pairs]: place in the kernel, point of x, point of out.", intermediate=True)
    counter = Output("Int32: pairs for each place in the kernel.", intermediate=True)
    paddings = Attr(REQUIRED, "Empty space on both sides of each dim.", type=AttrType.INTS)
    dilations = Attr(REQUIRED, "Steps between the places of a window.", type=AttrType.INTS)
    strides = Attr(REQUIRED, "Steps between windows.", type=AttrType.INTS)
    groups = Attr(REQUIRED, "1.", type=AttrType.INT).in_set([1])
    subm = Attr(REQUIRED, "Whether out has the points of x.", type=AttrType.BOOLEAN)
    key = Attr("", "Paddle: under which name to keep the pairs for the next convolution; they are made anew here.")
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, kernel = ctx.dim("x"), ctx.dim("kernel")
        if not ctx.is_runtime and not (dims and kernel):
            return
        fits = len(dims) in (4, 5) and len(kernel) == len(dims)
        fits = fits and (dims[-1] == kernel[-2] or -1 in (dims[-1], kernel[-2]))
        ctx.require(fits, f"x is {list(dims)}, kernel {list(kernel)}; expected [N, D, H, W, C] and [kD, kH, kW, C, O]")
        space = list(dims[1:-1])
        if not ctx.attr("subm"):
            sizes = [None if k == -1 else k for k in kernel[:-2]]
            space = window_dims(ctx, space, sizes, ctx.attr("paddings"), ctx.attr("strides"))
        ctx.set_dim("out", [dims[0], *space, kernel[-1]])
        ctx.set_dim("rulebook", (3, -1))
        ctx.set_dim("counter", (-1,))

    infer_var_type = _types_of_windows


class SparseConv3dGrad(GradOpDef, of=SparseConv3d, reads="x kernel out rulebook", attrs=""):
    r"""$$x@GRAD_i = \sum_k out@GRAD_{o(i, k)}\, kernel_k^T,\quad kernel@GRAD_k = \sum_i x_i^T out@GRAD_{o(i, k)}$$"""

    expected_kernel_type = dtype_of("x")


# sparse_fused_attention and its gradient.
class SparseFusedAttention(OpDef, type="sparse_fused_attention"):
    r"""$$out = \mathrm{softmax}(query\, key^T / \sqrt{d})\, value$$ over the places that sparse_mask lists."""

    query = Input("[batch, heads, length, d].")
    key = Input("[batch, heads, length, d].")
    value = Input("[batch, heads, length, d].")
    sparse_mask = Input("Sparse tensor in CSR [batch * heads, length, length], of which the pattern is read.")
    key_padding_mask = Input("[batch, length]: keys with 0 take no part.", dispensable=True)
    attn_mask = Input("[length, length]: places with 0 take no part.", dispensable=True)
    out = Output("[batch, heads, length, d].")
    softmax = Output("The weights over sparse_mask's pattern.", intermediate=True)
    expected_kernel_type = dtype_of("query")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("query")
        if not dims and not ctx.is_runtime:
            return
        batch, heads, length, _ = ctx.require_rank("query", 4)
        ctx.require_dims("key", dims, why="the shape of query")
        ctx.require_dims("value", dims, why="the shape of query")
        count = -1 if min(batch, heads) < 0 else batch * heads
        ctx.require_dims("sparse_mask", (count, length, length), why="[batch * heads, length, length] of query")
        ctx.require_dims("key_padding_mask", (batch, length))
        ctx.require_dims("attn_mask", (length, length))
        ctx.set_dim("out", dims)
        ctx.set_dim("softmax", (count, length, length))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("out", VarType.LOD_TENSOR)
        ctx.set_dtype("out", ctx.dtype("query"))
        ctx.set_kind("softmax", ctx.kind("sparse_mask"))
        ctx.set_dtype("softmax", ctx.dtype("query"))


class SparseFusedAttentionGrad(
    GradOpDef, of=SparseFusedAttention, reads="query key value softmax out@GRAD", grads_of="query key value"
):
    r"""With the weights w and $$s = w (v - \sum_j w_j v_j)$$ of $$v = out@GRAD\, value^T$$:

    $$query@GRAD = s\, key / \sqrt{d},\quad key@GRAD = s^T query / \sqrt{d},\quad value@GRAD = w^T out@GRAD$$
    """


# sparse_maxpool and its gradient.
class SparseMaxpool(OpDef, type="sparse_maxpool"):
    r"""$$out_o = \max_k x_{o \cdot stride - padding + k}$$ over the points that x lists, for each channel."""

    x = Input("Sparse tensor in COO [N, D, H, W, C], of which the channels C are dense.")
    out = Output("Sparse tensor in COO, which lists the windows that meet a point of x.")
    rulebook = Output("Int32 [3, pairs]: place in the window, point of x, point of out.", intermediate=True)
    counter = Output("Int32: pairs for each place in the window.", intermediate=True)
    kernel_sizes = Attr(REQUIRED, "Sizes of a window.", type=AttrType.INTS)
    paddings = Attr(REQUIRED, "Empty space on both sides of each dim.", type=AttrType.INTS)
    dilations = Attr(REQUIRED, "Steps between the places of a window.", type=AttrType.INTS)
    strides = Attr(REQUIRED, "Steps between windows.", type=AttrType.INTS)

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime and not ctx.dim("x"):
            return
        dims = ctx.require_rank("x", 4, 5)
        space = window_dims(ctx, dims[1:-1], ctx.attr("kernel_sizes"), ctx.attr("paddings"), ctx.attr("strides"))
        ctx.set_dim("out", [dims[0], *space, dims[-1]])
        ctx.set_dim("rulebook", (3, -1))
        ctx.set_dim("counter", (-1,))

    infer_var_type = _types_of_windows


class SparseMaxpoolGrad(GradOpDef, of=SparseMaxpool, reads="x out rulebook", attrs=""):
    r"""$$x@GRAD_i = \sum_o out@GRAD_o \cdot [x_i = out_o]$$ over the windows that i lies in."""

    expected_kernel_type = dtype_of("x")


# sparse_sync_batch_norm and its gradient.
class SparseSyncBatchNorm(Norm, type="sparse_sync_batch_norm"):
    r"""$$out = scale \frac{x - \mu}{\sqrt{\sigma^2 + epsilon}} + bias$$ for each channel, over the listed points.

    Statistics are those of the points of all ranks.
    """

    inplace = {"mean": "mean_out", "variance": "variance_out"}


class SparseSyncBatchNormGrad(NormGrad, of=SparseSyncBatchNorm):
    r"""With xhat the normalised x: bias@GRAD = sum out@GRAD, scale@GRAD = sum xhat out@GRAD, and

    $$x@GRAD = \frac{scale}{\sigma} (out@GRAD - mean(out@GRAD) - xhat \cdot mean(xhat\, out@GRAD))$$, without the means
    where the forward op used the running statistics.
    """
