"""Definitions of attention and its softmax."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like
from oprack.op.sbp import leading


# fused_softmax_mask and its gradient.
class FusedSoftmaxMask(OpDef, type="fused_softmax_mask"):
    r"""$$Out = \operatorname{softmax}(X + Mask)$$ along the last dim."""

    X = Input("[B, H, S, T].")
    Mask = Input("[B, 1, S, T].")
    Out = Output("Shape of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        b, _, s, t = dims = ctx.require_rank("X", 4)
        ctx.require_dims("Mask", (b, 1, s, t), why=f"one mask for all heads of X {list(dims)}")
        ctx.set_dim("Out", dims)

    def make_grad(fwd: ForwardOp) -> GradOp:
        slots = {"Softmax": fwd.output("Out"), "Out@GRAD": fwd.output_grad("Out"), "X@GRAD": fwd.input_grad("X")}
        return GradOp("fused_softmax_mask_grad", slots=slots)


class FusedSoftmaxMaskGrad(GradOpDef, type="fused_softmax_mask_grad"):
    r"""$$X@GRAD = Softmax \odot (Out@GRAD - \sum_{last} Softmax \odot Out@GRAD)$$"""

    Softmax = Input("Out of the forward op.")
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Gradient of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Softmax", "Out@GRAD")
        like(ctx, [("X@GRAD", "Softmax")])


# fused_softmax_mask_upper_triangle and its gradient.
class FusedSoftmaxMaskUpperTriangle(OpDef, type="fused_softmax_mask_upper_triangle"):
    r"""$$Out_{s} = \operatorname{softmax}(X_{s, 0 \dots s})$$ zero for what lies after step $s$."""

    X = Input("[B, H, S, S].")
    Out = Output("Shape of X.")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 4)
        ctx.require(
            dims[2] == dims[3] or -1 in dims[2:], f"X has shape {list(dims)}; expected square matrices in its last dims"
        )
        ctx.set_dim("Out", dims)


class FusedSoftmaxMaskUpperTriangleGrad(GradOpDef, of=FusedSoftmaxMaskUpperTriangle, reads="Out", like="Out"):
    r"""$$X@GRAD = Out \odot (Out@GRAD - \sum_{last} Out \odot Out@GRAD)$$"""


class MultiheadMatmul(OpDef, type="multihead_matmul"):
    r"""$$[Q, K, V] = Input\,W + Bias,\quad Out = \operatorname{softmax}(alpha\,Q K^T + BiasQK)\,V$$ for each head."""

    Input_ = Input("[B, S, N].", name="Input")
    W = Input("[N, 3, N], or [N, 3 N].")
    Bias = Input("[3, N], or [3 N].")
    BiasQK = Input("What broadcasts with [B, H, S, S].", dispensable=True)
    Out = Output("[B, S, N], heads side by side.")
    transpose_Q = Attr(False, "Always false.").in_set({False})
    transpose_K = Attr(True, "Always true.").in_set({True})
    transpose_V = Attr(False, "Always false.").in_set({False})
    alpha = Attr(1.0, "Factor of the products.")
    head_number = Attr(1, "H, which divides N.").greater_than(0)

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Input", 3)
        size, heads = dims[2], ctx.attr("head_number")
        ctx.require(
            size < 0 or size % heads == 0,
            f"Input has shape {list(dims)} and head_number is {heads}; expected a number that divides {size}",
        )
        for slot, count in (("W", 3 * size * size), ("Bias", 3 * size)):
            found = 1
            for d in ctx.dim(slot):
                found = -1 if -1 in (found, d) else found * d
            ctx.require(
                size < 0 or found in (-1, count),
                f"{slot} has shape {list(ctx.dim(slot))}; expected {count} numbers for Input {list(dims)}",
            )
        ctx.set_dim("Out", dims)
        ctx.share_lod("Input", "Out")


class SelfDpAttention(OpDef, type="self_dp_attention"):
    r"""$$Out = \operatorname{softmax}(alpha\,Q K^T)\,V$$ for each head; Q, K and V lie along the third dim of X."""

    X = Input("[B, S, 3, H, D].")
    Out = Output("[B, S, H, D].")
    alpha = Attr(1.0, "Factor of the products.")
    head_number = Attr(1, "H.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 5)
        b, s, _, _, d = dims
        ctx.require_dims("X", (b, s, 3, ctx.attr("head_number"), d), why="with three parts and `head_number` heads")
        ctx.set_dim("Out", (b, s, ctx.attr("head_number"), d))
