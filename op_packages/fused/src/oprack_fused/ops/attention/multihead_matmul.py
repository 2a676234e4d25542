"""multihead_matmul: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output


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
