"""onednn_attention: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, empty_grad


class OneDNNAttention(OpDef, type="onednn_attention"):
    r"""$$Out = softmax(alpha \cdot Q K^T + Mask) V$$ per head; heads lie side by side. Made by passes."""

    Q = op.Input("Queries [B, N, heads * D].")
    K = op.Input("Keys [B, M, heads * D].")
    V = op.Input("Values [B, M, heads * E].")
    Mask = op.Input("What is added before the softmax; it can be broadcast to [B, heads, N, M].", dispensable=True)
    Out = op.Output("[B, N, heads * E].")
    heads = Attr(1, "Parts of the last dim that attend on their own.").at_least(1)
    alpha = Attr(1.0, "Factor of the products.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        q, k, v = (ctx.require_rank(slot, 3) for slot in "QKV")
        heads = ctx.attr("heads")
        ctx.require(
            all(x[2] < 0 or x[2] % heads == 0 for x in (q, k, v)),
            f"the last dims of Q {list(q)}, K {list(k)} and V {list(v)} must be multiples of heads {heads}",
        )
        ctx.require_dims("K", [q[0], -1, q[2]])
        ctx.require_dims("V", [q[0], k[1], -1])
        if ctx.has_input("Mask"):
            mask, scores = ctx.require_rank("Mask", 0, 1, 2, 3, 4), (q[0], heads, q[1], k[1])
            ctx.require(
                all(m in (1, s) or -1 in (m, s) for m, s in zip(mask, scores[4 - len(mask) :], strict=True)),
                f"Mask has shape {list(mask)}, which can't be broadcast to {list(scores)}: [B, heads, N, M]",
            )
        ctx.set_dim("Out", (*q[:2], v[2]))
